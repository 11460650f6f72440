#!/usr/bin/env bash
# Trains the heads of the embedded classifiers: train.sh DATA [options of train.py]
#
# The virtual environment is made once, in .cache/train/venv. The stock torch wheel links to
# accelerator libraries of 2.7 GB that a run on CPU never calls: stubs take their place
# (needs gcc and nm). Needs Python 3.11, Go, 4 GB of memory; about half an hour of one core.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=$here/../../.cache/train
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)

stamp=$cache/venv/installed-$(sha256sum "$here/requirements.txt" | cut -c1-12)
if [ ! -e "$stamp" ]; then
  "${PYTHON:-python3.11}" -m venv --clear "$cache/venv"
  "$cache/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r "$here/requirements.txt"
  site=$("$cache/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
  python3 "$here/../real-vllm/stub_accel_libs.py" "$site/torch/lib" >/dev/null
  "$cache/venv/bin/python" -c 'import sklearn, torch'
  touch "$stamp"
fi
export OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 PYTHONHASHSEED=0
exec "$cache/venv/bin/python" "$here/train.py" "$@" --cache "$cache"
