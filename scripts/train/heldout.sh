#!/usr/bin/env bash
# Measures the guard on whole sources that the model which judges them has not met: heldout.sh DATA [options of heldout.py]
#
# Needs bin/kvasir (make build), Python 3.11, Go and 6 GB of memory. What was scored is kept in .cache/train/heldout,
# so a run that was stopped goes on. With everything new it takes some hour and a half of one core, two thirds of it
# for the nets; `heldout.sh DATA --models shipped` takes a minute.
set -euo pipefail

. "$(dirname "${BASH_SOURCE[0]}")/venv.sh"
. "$here/documents.sh"
venv venv requirements.txt "$cache/venv/bin/python" -c 'import sklearn'
documents "$1"
exec "$cache/venv/bin/python" "$here/heldout.py" "$@" --cache "$cache" --documents "$cache/documents.jsonl"
