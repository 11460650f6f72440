#!/usr/bin/env bash
# Trains the tagger of names: tagger.sh DATA [options of tagger.py]
#
# Needs Python 3.11, Go, gcc, 4 GB of memory; about seven minutes of one core.
set -euo pipefail

. "$(dirname "${BASH_SOURCE[0]}")/torch.sh"
data=$1
shift
exec "$cache/tagger/bin/python" "$here/tagger.py" --data "$data" --work "$cache/tags" "$@"
