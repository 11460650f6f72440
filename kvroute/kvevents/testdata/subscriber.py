#!/usr/bin/env python3
"""Listens with libzmq as other routers do: SUB for live messages, DEALER and REQ for a replay.

usage: subscriber.py EVENTS REPLAY TOPIC COUNT

Prints `ready` when the first live message has come, and after COUNT more one line `live FIRST LAST FRAMES`; then what
a DEALER gets for a replay from 3 on, `dealer FIRST LAST FRAMES END`, for one in the form without the empty frame,
`bare nothing`, and what a REQ gets, `req FIRST FRAMES`.
"""
import sys

import zmq

events, replay, topic, count = sys.argv[1], sys.argv[2], sys.argv[3].encode(), int(sys.argv[4])
context = zmq.Context()
sub = context.socket(zmq.SUB)
sub.setsockopt(zmq.SUBSCRIBE, topic)
sub.connect(events)


def number(frame):
    return int.from_bytes(frame, "big", signed=True)


def check(frames):
    assert frames[0].startswith(topic) and len(frames[1]) == 8 and frames[2], frames
    return number(frames[1])


last = first = check(sub.recv_multipart())
print("ready", flush=True)
while last < first + count:
    frames = sub.recv_multipart()
    assert check(frames) == last + 1, (frames, last)
    last += 1
print("live", first, last, len(frames), flush=True)

dealer = context.socket(zmq.DEALER)
dealer.connect(replay)
dealer.send_multipart((b"", (3).to_bytes(8, "big")))
got = []
while True:
    frames = dealer.recv_multipart()
    assert frames[0] == b"", frames
    if number(frames[-2]) == -1:
        break
    got.append(number(frames[-2]))
assert got == list(range(got[0], got[-1] + 1)), got
print("dealer", got[0], got[-1], len(frames), number(frames[-2]), flush=True)

dealer.send_multipart(((3).to_bytes(8, "big"),))
print("bare", dealer.recv_multipart() if dealer.poll(100) else "nothing", flush=True)

req = context.socket(zmq.REQ)
req.connect(replay)
req.send((5).to_bytes(8, "big"))
frames = req.recv_multipart()
print("req", number(frames[-2]), len(frames), flush=True)
context.destroy(linger=0)
