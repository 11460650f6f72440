#!/usr/bin/env bash
# Measures the guard on whole sources that the model which judges them has not met: heldout.sh DATA [options of heldout.py]
#
# Needs Python 3.11, Go and 10 GB of memory. What was scored is kept in .cache/train/heldout, so a run that was stopped
# goes on. With everything new it takes some hour of one core, five minutes for each fold of the guard.
set -euo pipefail

. "$(dirname "${BASH_SOURCE[0]}")/venv.sh"
. "$here/documents.sh"
venv venv requirements.txt "$cache/venv/bin/python" -c 'import sklearn'
documents "$1"
exec "$cache/venv/bin/python" "$here/heldout.py" "$@" --cache "$cache" --documents "$cache/documents.jsonl"
