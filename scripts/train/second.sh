#!/usr/bin/env bash
# Fine-tunes the second stage of the guard of all rows and packs it: second.sh DATA [options of finetune.py]
#
# As finetune.sh, which see. Another processor gives slightly other weights; fitting how both stages are added up
# (second.py) takes the folds, which finetune.sh judges.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# The seed is finetune.py's and pack.py's own: pack.py looks for the weights by it.
"$here/finetune.sh" "$@" --base e5 --fold all
cache=$here/../../.cache/train
exec "$cache/tagger/bin/python" "$here/pack.py" "$1" --packages "$cache/packages" --documents "$cache/documents.jsonl" --cache "$cache"
