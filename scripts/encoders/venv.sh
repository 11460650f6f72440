#!/usr/bin/env bash
# Makes the virtual environment .cache/encoders/venv, anew when requirements.txt has changed, and runs its Python in
# scripts/train/env.sh's settings: venv.sh [reference.py OUT | ...]
#
# Needs Python 3.11 and gcc, nm; 1.7 GB of disk, 0.6 GB of them fetched.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
. "$root/scripts/train/venv.sh"
cache=$root/.cache/encoders
mkdir -p "$cache"
venv venv ../encoders/requirements.txt stub_torch venv 'onnx, onnxruntime.quantization, torch, transformers'
[ $# = 0 ] || exec "$cache/venv/bin/python" "$@"
