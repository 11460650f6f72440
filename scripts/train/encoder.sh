#!/usr/bin/env bash
# Makes the encoder: encoder.sh DATA [options of encoder.py]
#
# Its weights are in the repository: only who changes encoder.py or table.py needs it. What was trained on the
# encoder, which is all of `make train`, has to be trained anew. Needs Python 3.11, gcc, 6 GB of memory; about
# eight minutes of one core.
set -euo pipefail

. "$(dirname "${BASH_SOURCE[0]}")/torch.sh"
exec "$cache/tagger/bin/python" "$here/encoder.py" --cache "$cache/../use" "$@"
