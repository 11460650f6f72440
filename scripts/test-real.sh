#!/bin/sh
# `make test-real`: a real vLLM on CPU behind Kvasir. Installs it on the first run (about 1 GB to
# fetch, 3 GB on disk, some minutes); asked for explicitly, so a missing part is a failure.
set -eu
cd "$(dirname "$0")/.."
export KVASIR_REAL=required REAL_VLLM_DIR="$PWD/.cache/real-vllm"

scripts/parts.sh e2e-modules python-sdk node-sdk
scripts/real-vllm/make-model.sh "$REAL_VLLM_DIR"
cd e2e && go test -tags real -run '^TestReal' -v -count=1 -timeout 25m ./...
