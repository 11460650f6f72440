#!/usr/bin/env bash
# Times Kvasir's encoders beside onnxruntime's, over the model of a directory: bench.sh [DIR]
#
# DIR (default: all-MiniLM-L6-v2, which scripts/parts.sh brings) has config.json, tokenizer.json and model.safetensors,
# and takes 512 tokens. Three rounds in turn, on one core (CORE=1: that one; default: the last that may be used).
# Prints medians of the rounds. Needs Python 3.11, Go, gcc, taskset.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
if [ $# -gt 0 ]; then
  dir=$(cd "$1" && pwd)
else
  "$root/scripts/parts.sh" encoder-tokenizers >&2
  dir=$root/.cache/encoder-tokenizers/minilm
fi
[ -e "$dir/model.safetensors" ] || { echo "bench: $dir has no model.safetensors" >&2; exit 1; }

encoders=$root/scripts/encoders cache=$root/.cache/encoders
"$encoders/venv.sh"
python=$cache/venv/bin/python
core=${CORE:-$("$python" -c 'import os; print(max(os.sched_getaffinity(0)))')}
work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

(cd "$root" && go test -c -o "$work/encoder.test" ./classify/encoder)
"$python" "$encoders/peer.py" "$dir" "$cache/nets" --lengths 16 --seconds 0 > "$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
for round in 1 2 3; do
  echo "round $round of 3" >&2
  (cd "$root/classify/encoder" && ENCODER=$dir taskset -c "$core" "$work/encoder.test" -test.run '^$' -test.bench '^BenchmarkNet$' -test.cpu 1) \
    > "$work/log" || { cat "$work/log" >&2; exit 1; }
  cat "$work/log" >> "$work/kvasir"
  taskset -c "$core" "$python" "$encoders/peer.py" "$dir" "$cache/nets" >> "$work/peer"
done

"$python" - "$work" <<'END'
import collections, pathlib, re, statistics, sys
work = pathlib.Path(sys.argv[1])
ours, peer = collections.defaultdict(list), collections.defaultdict(list)
for n, ns in re.findall(r"^BenchmarkNet/(\d+)\s+\d+\s+([\d.]+) ns/op", (work / "kvasir").read_text(), re.M):
    ours[n].append(float(ns) / 1e6)
for n, *row in map(str.split, (work / "peer").read_text().splitlines()):
    peer[n].append([float(v) for v in row])
print("| tokens | Kvasir, ms | onnxruntime, 8 bits, ms | floats, ms | times as fast as 8 bits | as floats | cosine of its 8 bits to its floats |")
print("|---|---|---|---|---|---|---|")
for n, rows in peer.items():
    floats, eight, cosine = map(statistics.median, zip(*rows))
    ms = statistics.median(ours[n])
    print(f"| {n} | {ms:.2f} | {eight:.2f} | {floats:.2f} | {eight / ms:.2f} | {floats / ms:.2f} | {cosine:.4f} |")
END
