#!/usr/bin/env bash
# Trains the pair model of the semantic cache: pair.sh [options of pair.py]
#
# From the texts in data/ alone. The virtual environment is that of train.sh. Needs Python 3.11 and
# Go; about three minutes of one core.
set -euo pipefail

. "$(dirname "${BASH_SOURCE[0]}")/venv.sh"
venv venv requirements.txt "$cache/venv/bin/python" -c 'import sklearn'
exec "$cache/venv/bin/python" "$here/pair.py" --cache "$cache" "$@"
