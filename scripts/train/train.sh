#!/usr/bin/env bash
# Trains the heads of the embedded classifiers: train.sh DATA [options of train.py]
#
# The virtual environment is made once, in .cache/train/venv. Needs Python 3.11, Go and 4 GB of
# memory; about a quarter of an hour of one core.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=$here/../../.cache/train
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)

stamp=$cache/venv/installed-$(sha256sum "$here/requirements.txt" | cut -c1-12)
if [ ! -e "$stamp" ]; then
  "${PYTHON:-python3.11}" -m venv --clear "$cache/venv"
  "$cache/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r "$here/requirements.txt"
  "$cache/venv/bin/python" -c 'import sklearn'
  touch "$stamp"
fi
. "$here/env.sh"
exec "$cache/venv/bin/python" "$here/train.py" "$@" --cache "$cache"
