#!/bin/sh
# Makes the virtual environment of check.py in DIRECTORY, from the pinned packages. A second run does nothing.
#
#   scripts/sdk/frameworks/venv.sh DIRECTORY
#
# requirements.txt was made by `uv pip compile --python-version 3.11 --generate-hashes --no-annotate --no-header`
# of litellm, langchain-openai, llama-index-llms-openai-like, instructor and pydantic-ai-slim[openai].
set -eu
here=$(dirname "$0")
cmp -s "$here/requirements.txt" "$1/requirements.txt" && exit 0
rm -rf "$1"
python3 -m venv "$1"
"$1/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r "$here/requirements.txt"
cp "$here/requirements.txt" "$1/requirements.txt"
