#!/usr/bin/env python3
"""Publishes KV events with the libraries that engines use, libzmq and msgspec, in the order of vLLM's ZmqEventPublisher.

usage: publisher.py BUFFER HIGH_WATER PING_MS        (ports of its own choice, printed as `EVENTS REPLAY`)

Reads lines `COUNT PER_SECOND EVENTS` from standard input and publishes for each COUNT batches of EVENTS BlockStored of
one block of 16 tokens (0 batches per second is as fast as it goes), then prints `sent SEQ SECONDS`. Between batches, and while idle, it answers replay
requests with three frames, as vLLM's source has it. It ends with its standard input.
"""
import sys
import time
from collections import deque
from typing import Any, Optional, Union

import msgspec
import zmq


class Batch(msgspec.Struct, array_like=True, omit_defaults=True, gc=False):
    ts: float
    events: list[Any]
    data_parallel_rank: Optional[int] = None


class BlockStored(msgspec.Struct, omit_defaults=True, gc=False, tag=True):
    block_hashes: list[Union[int, bytes]]
    parent_block_hash: Optional[Union[int, bytes]]
    token_ids: list[int]
    block_size: int
    lora_id: Optional[int]
    medium: Optional[str]
    lora_name: Optional[str]
    group_idx: Optional[int] = None


END = (-1).to_bytes(8, "big", signed=True)
buffer_steps, high_water = int(sys.argv[1]), int(sys.argv[2])
context = zmq.Context()
pub = context.socket(zmq.PUB)
pub.set_hwm(high_water)
pub.setsockopt(zmq.HEARTBEAT_IVL, int(sys.argv[3]))
pub.setsockopt(zmq.HEARTBEAT_TIMEOUT, 60_000)
replay = context.socket(zmq.ROUTER)
ports = pub.bind_to_random_port("tcp://127.0.0.1"), replay.bind_to_random_port("tcp://127.0.0.1")
print(*ports, flush=True)

encoder = msgspec.msgpack.Encoder()
kept = deque(maxlen=buffer_steps)
seq = 0


def answer():
    frames = replay.recv_multipart()
    if len(frames) != 3:
        return
    client, _, start = frames
    for number, payload in kept:
        if number >= int.from_bytes(start, "big"):
            replay.send_multipart((client, b"", number.to_bytes(8, "big"), payload))
    replay.send_multipart((client, b"", END, b""))


tokens = list(range(100_000, 100_016))
block = 1 << 63


def publish(count):
    global seq, block
    events = [BlockStored([block + i + 1], block + i, tokens, 16, None, "GPU", None, 0) for i in range(count)]
    block += count
    payload = encoder.encode(Batch(time.time(), events, 0))
    pub.send_multipart((b"kv", seq.to_bytes(8, "big"), payload))
    kept.append((seq, payload))
    seq += 1


poller = zmq.Poller()
poller.register(replay, zmq.POLLIN)
poller.register(sys.stdin, zmq.POLLIN)
while True:
    ready = dict(poller.poll())
    if replay in ready:
        answer()
    if sys.stdin.fileno() not in ready:
        continue
    line = sys.stdin.readline()
    if not line:
        break
    count, per_second, events = map(int, line.split())
    began = time.perf_counter()
    for i in range(count):
        if per_second and i % 100 == 0:
            ahead = i / per_second - (time.perf_counter() - began)
            if ahead > 0:
                time.sleep(ahead)
        publish(events)
        if i % 10 == 0 and replay.poll(0):
            answer()
    print("sent", seq, time.perf_counter() - began, flush=True)
context.destroy(linger=0)
