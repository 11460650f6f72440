# Sourced by the scripts beside it: $here, $cache, venv and stub_torch. Needs Python 3.11.
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=$here/../../.cache/train
mkdir -p "$cache"
cache=$(cd "$cache" && pwd)
. "$here/env.sh"

# venv NAME REQUIREMENTS COMMAND...: a virtual environment in $cache/NAME with what a file of pinned packages names,
# made once, and anew when that file changes. COMMAND has to succeed in the end: it shows that the packages are whole.
venv() {
  local at=$cache/$1 requirements=$here/$2 stamp
  shift 2
  stamp=$at/installed-$(sha256sum "$requirements" | cut -c1-12)
  if [ ! -e "$stamp" ]; then
    "${PYTHON:-python3.11}" -m venv --clear "$at"
    "$at/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r "$requirements"
    "$@"
    touch "$stamp"
  fi
}

# stub_torch NAME MODULES: a COMMAND for venv, of an environment with torch. The stock torch wheel links to accelerator
# libraries of 2.7 GB that a run on CPU never calls: stubs take their place (needs gcc and nm). Then it imports MODULES.
stub_torch() {
  local python=$cache/$1/bin/python site
  site=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
  python3 "$here/../real-vllm/stub_accel_libs.py" "$site/torch/lib" >/dev/null
  "$python" -c "import $2"
}
