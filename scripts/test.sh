#!/bin/sh
# All of `make test` after the build, the cheap checks first. Needs bin/kvasir.
set -eu
cd "$(dirname "$0")/.."

scripts/lint.sh
scripts/parts.sh race-detector python-sdk node-sdk python-clients node-clients readme-curl milvus-lite zeromq starlette tokenizers tokenizer-files \
  encoder-tokenizers chromium

race=
if [ -e .cache/parts/race-detector ]; then race=-race; fi
go test $race -shuffle=on ./...
if [ -e .cache/parts/e2e-modules ]; then
  # Most of these tests wait: for clocks, for SDKs, for processes.
  cd e2e && go test $race -shuffle=on -count=1 -parallel 8 ./...
fi
