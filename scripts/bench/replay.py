"""Plays a trace with Dynamo's own replay, for scripts/bench/replay.go. One JSON object on standard output.

usage: python replay.py TRACE.jsonl WORKERS SPEED round_robin|kv_router
"""
import json
import os
import sys

os.environ["DYN_LOG"] = "error"

from dynamo.replay import run_trace_replay  # noqa: E402

trace, workers, speed, mode = sys.argv[1:]
summary = run_trace_replay(
    trace,
    extra_engine_args={"engine": {"backend": "vllm", "block_size": 64}},
    num_workers=int(workers),
    router_mode=mode,
    arrival_speedup_ratio=float(speed),
    trace_block_size=512,
).summary
print(json.dumps({
    "ttft_ms": {"mean": summary["mean_ttft_ms"], "p50": summary["median_ttft_ms"], "p99": summary["p99_ttft_ms"]},
    "itl_ms": {"mean": summary["mean_itl_ms"]},
    "e2e_ms": {"mean": summary["mean_e2e_latency_ms"]},
    "reuse": summary["first_admission_prefix_cache_reused_ratio"],
}))
