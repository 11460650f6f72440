#!/usr/bin/env bash
# Trains the heads of the embedded classifiers: train.sh DATA [options of train.py]
#
# The virtual environment is made once, in .cache/train/venv. Needs Python 3.11, Go and 4 GB of
# memory; for the guard 10 GB and three quarters of an hour of one core: it is judged by five folds first.
set -euo pipefail

. "$(dirname "${BASH_SOURCE[0]}")/venv.sh"
. "$here/documents.sh"
venv venv requirements.txt "$cache/venv/bin/python" -c 'import sklearn'
documents "$1"
exec "$cache/venv/bin/python" "$here/train.py" "$@" --cache "$cache" --documents "$cache/documents.jsonl"
