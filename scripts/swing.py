#!/usr/bin/env python3
"""Makes hours of requests that come more and less often out of a short trace, for kvasir plan and kvasir replay.

usage: swing.py TRACE [--hours 12] [--rate R] [--depth 0.6] [--period 60] [--seed 0] > OUT

TRACE is a file of Mooncake's JSON lines or of Azure's CSV; OUT has the same form. The requests are those of the trace,
in their order and with their gaps, over and over: each pass begins at another place of the trace, drawn at random, and
its prompts have nothing in common with those of another pass but what one request in a hundred of the trace has. What
changes is how fast time goes by. Requests come at

    rate * level * (1 + depth * sin(2 pi t / period))

a second, RATE being that of the trace unless given, PERIOD in minutes. Level and depth are drawn anew for each period,
between 0.9 and 1.1 and between 0.8 and 1 times what is given, so that no period says exactly what the next one will be.
The same arguments give the same bytes.
"""
import argparse
import bisect
import collections
import datetime
import json
import math
import random
import sys

STEP = 1.0  # seconds, in which the swing is summed up


def mooncake(lines):
    """Rows (seconds, prompt, answer, ids) of Mooncake's JSON lines, and how a row is written."""
    rows = [json.loads(line) for line in lines if line.strip()]
    seen = collections.Counter(i for r in rows for i in set(r["hash_ids"]))
    common = {i for i, n in seen.items() if n * 100 >= len(rows)}
    span = max(seen) + 1

    def write(at, turn, row):
        ids = [i if i in common else i + turn * span for i in row[3]]
        return json.dumps({"timestamp": round(at * 1000), "input_length": row[1], "output_length": row[2], "hash_ids": ids})

    return [(r["timestamp"] / 1000, r["input_length"], r["output_length"], r["hash_ids"]) for r in rows], write, None


def azure(lines):
    """The same of Azure's CSV."""
    form = "%Y-%m-%d %H:%M:%S.%f"
    rows = []
    for line in lines[1:]:
        if line.strip():
            at, prompt, answer = line.strip().split(",")
            rows.append((datetime.datetime.strptime(at[:26], form).timestamp(), int(prompt), int(answer), None))
    begin = datetime.datetime(2024, 1, 1)

    def write(at, _, row):
        when = begin + datetime.timedelta(microseconds=round(at * 1e6))
        return f"{when.strftime(form)}0,{row[1]},{row[2]}"

    return rows, write, lines[0].strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trace")
    for name, standard in ("hours", 12.0), ("rate", 0.0), ("depth", 0.6), ("period", 60.0):
        parser.add_argument("--" + name, type=float, default=standard)
    parser.add_argument("--seed", type=int, default=0)
    a = parser.parse_args()
    if not (0 < a.hours <= 1000 and 0 <= a.rate and 0 <= a.depth < 1 and a.period > 0):
        parser.error("hours, rate and period are above 0, depth is from 0 to below 1")
    with open(a.trace, encoding="utf-8-sig") as f:
        lines = f.readlines()
    rows, write, header = (mooncake if lines[0].startswith("{") else azure)(lines)
    rows.sort(key=lambda r: r[0])
    length = rows[-1][0] - rows[0][0]
    length += length / len(rows)  # a pass ends as long after its last request as they come apart
    rate = a.rate or len(rows) / length
    draw = random.Random(a.seed)

    # The trace's own time that has gone by at each step.
    swing, passed = [], [0.0]
    for step in range(int(a.hours * 3600 / STEP)):
        t = step * STEP / 60
        if int(t / a.period) == len(swing):
            swing.append((draw.uniform(0.9, 1.1), a.depth * draw.uniform(0.8, 1)))
        level, depth = swing[int(t / a.period)]
        fast = rate * level * (1 + depth * math.sin(2 * math.pi * t / a.period)) / (len(rows) / length)
        passed.append(passed[-1] + fast * STEP)

    out = sys.stdout
    if header:
        out.write(header + "\n")
    turn, at = 0, 0.0  # of the trace's own time, where the pass begins
    while at < passed[-1]:
        first = draw.randrange(len(rows))
        begin = rows[first][0]
        for i in range(len(rows)):
            row = rows[(first + i) % len(rows)]
            own = at + (row[0] - begin) % length
            if own >= passed[-1]:
                break
            step = bisect.bisect_right(passed, own) - 1
            within = (own - passed[step]) / (passed[step + 1] - passed[step])
            out.write(write((step + within) * STEP, turn, row) + "\n")
        at, turn = at + length, turn + 1


if __name__ == "__main__":
    main()
