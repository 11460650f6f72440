#!/usr/bin/env bash
# Starts a Dynamo frontend with mocker workers on loopback (discovery by files or etcd; no NATS or GPU),
# prints READY when all are registered, and runs until it is told to stop (SIGTERM or SIGINT).
#
#   serve.sh PORT
#
# Environment:
#   DYNAMO_DIR        what install.sh filled (default .cache/dynamo)
#   MODEL_NAME        default m
#   WORKERS           mockers, of role decode if there are prefill ones (default 2)
#   PREFILL_WORKERS   default 0
#   ROUTER_MODE       direct | kv | round-robin ... (default direct: the caller names the worker)
#   SPEEDUP           of the mockers' time (default 10; 0 is real time)
#   BLOCK_SIZE, NUM_BLOCKS, MAX_MODEL_LEN    default 64, 16384, 131072
#   EVENTS            first port of the raw KV events: worker i publishes on EVENTS+i and gives missed messages
#                     again on EVENTS+500+i (only the prefill workers, if there are any); empty: none
#   ETCD              URL of an etcd where the workers register; empty: in a directory, that a line `FILES DIR` names
#   WORKERS_MAY_END   1: it goes on when a worker has ended
#
# For each worker there is a line `WORKER role=R instance=ID [events=PORT replay=PORT] pid=PID`: ID is the number by
# which requests name it. Each is a process of its own, as nothing else says whose events come from which port.
set -euo pipefail

dir=$(cd "${DYNAMO_DIR:-.cache/dynamo}" && pwd)
port=$1
model=${MODEL_NAME:-m} workers=${WORKERS:-2} prefill=${PREFILL_WORKERS:-0} events=${EVENTS:-}
state=$(mktemp -d)
pids=()

stop() {
  trap - TERM INT EXIT
  for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done
  for _ in $(seq 50); do
    alive=0
    for p in "${pids[@]}"; do if kill -0 "$p" 2>/dev/null; then alive=1; fi; done
    [ "$alive" = 0 ] && break
    sleep 0.1
  done
  for p in "${pids[@]}"; do kill -9 "$p" 2>/dev/null || true; done
  rm -rf "$state"
}
trap 'stop; exit 0' TERM INT
trap stop EXIT

mkdir -p "$state/kv" "$state/home"
# HOME: model cards are kept there, and would be found by the next run.
export HOME="$state/home" HF_HOME="$state/hf" HF_HUB_OFFLINE=1 TRANSFORMERS_OFFLINE=1
export DYN_REQUEST_PLANE=tcp DYN_EVENT_PLANE=zmq
if [ -n "${ETCD:-}" ]; then
  export DYN_DISCOVERY_BACKEND=etcd ETCD_ENDPOINTS="$ETCD"
else
  export DYN_DISCOVERY_BACKEND=file DYN_FILE_KV="$state/kv"
  echo "FILES $state/kv"
fi
# What is not told so is advertised on the first network interface.
export DYN_EVENT_PLANE_HOST=127.0.0.1 DYN_TCP_RPC_HOST=127.0.0.1 DYN_TCP_RESPONSE_STREAM_HOST=127.0.0.1
export DYN_SELF_HOST_METADATA=0 DYN_LOG=${DYN_LOG:-warn} DYN_GRACEFUL_SHUTDOWN_GRACE_PERIOD_SECS=0

python=$dir/venv/bin/python

start() { # LOG COMMAND...
  local log=$1
  shift
  "$@" > "$state/$log.log" 2>&1 < /dev/null &
  pids+=($!)
}
# instances: the numbers of the workers that have registered.
instances() {
  "$python" - "$port" 2>/dev/null <<'PY'
import json, sys, urllib.request
health = json.load(urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/health", timeout=2))
print(*[i["instance_id"] for i in health["instances"] if i["endpoint"] == "generate"])
PY
}
served() {
  "$python" - "$port" "$model" 2>/dev/null <<'PY'
import json, sys, urllib.request
models = json.load(urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/v1/models", timeout=2))["data"]
sys.exit(not any(m["id"] == sys.argv[2] for m in models))
PY
}
deadline=$(($(date +%s) + ${START_TIMEOUT:-120}))
patience() { # after each look: fail when a process has ended or the time is over
  for p in "${pids[@]}"; do
    kill -0 "$p" 2>/dev/null || { echo "serve: a process of Dynamo stopped; the end of its logs:" >&2; tail -n 20 "$state"/*.log >&2; exit 1; }
  done
  if [ "$(date +%s)" -ge "$deadline" ]; then echo "serve: not ready in time" >&2; tail -n 20 "$state"/*.log >&2; exit 1; fi
  sleep 0.2
}
known=
worker() { # NUMBER ROLE ARGUMENTS...
  local n=$1 role=$2 wire=() heard=
  shift 2
  if [ -n "$events" ] && [ "$role" != decode ]; then # a mocker that only decodes publishes nothing
    heard=" events=$((events + n)) replay=$((events + 500 + n))"
    wire=(--zmq-kv-events-ports $((events + n)) --zmq-replay-ports $((events + 500 + n)))
  fi
  start "worker-$n" "$python" -m dynamo.mocker --model-path "$dir/model" --model-name "$model" --num-workers 1 \
    --speedup-ratio "${SPEEDUP:-10}" --block-size "${BLOCK_SIZE:-64}" --num-gpu-blocks-override "${NUM_BLOCKS:-16384}" \
    --max-model-len "${MAX_MODEL_LEN:-131072}" ${wire[@]+"${wire[@]}"} "$@"
  while :; do
    for id in $(instances || true); do
      case " $known " in *" $id "*) ;; *)
        known+=" $id"
        echo "WORKER role=$role instance=$id$heard pid=${pids[-1]}"
        return
      esac
    done
    patience
  done
}

start frontend "$python" -m dynamo.frontend --http-host 127.0.0.1 --http-port "$port" --router-mode "${ROUTER_MODE:-direct}"
for ((i = 0; i < prefill; i++)); do worker "$i" prefill --disaggregation-mode prefill; done
for ((i = prefill; i < prefill + workers; i++)); do
  if [ "$prefill" -gt 0 ]; then worker "$i" decode --disaggregation-mode decode; else worker "$i" both; fi
done
until served; do patience; done
echo READY
watched=("${pids[@]}")
[ "${WORKERS_MAY_END:-}" != 1 ] || watched=("${pids[0]}") # the frontend
while :; do
  for p in "${watched[@]}"; do
    if ! kill -0 "$p" 2>/dev/null; then echo "serve: a process of Dynamo has stopped" >&2; exit 1; fi
  done
  sleep 1 & wait $!
done
