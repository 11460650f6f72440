"""Trains the heads of classify/model and writes their weights.

    train.py DATA [--cache DIR] [--out DIR]

With --out, heads of one's own for classify.models; the rows that Go's tests compare are then not
written. See the README beside it. One core, a fixed seed: the same rows give the same
weights, see env.sh.
"""

import argparse
import json
import os
import time

import numpy as np

import category
import container
import dense
import features
import guard
import heldout
import rows as sets
import sources

SEED = 7
GUARD_SEED = 27
WEIGHTS = os.path.join(features.ROOT, "classify/model/weights")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--cache", default=os.path.join(features.ROOT, ".cache/train"))
    parser.add_argument("--documents", required=True, help="what documents.py wrote")
    parser.add_argument("--out", default=WEIGHTS)
    parser.add_argument("--only", choices=["category", "guard"])
    options = parser.parse_args()
    os.makedirs(options.cache, exist_ok=True)
    os.makedirs(options.out, exist_ok=True)

    if options.only != "guard":
        save(options, "heads", train_category(list(sets.public(options.data)) + list(sets.written()), options))
    if options.only != "category":
        save(options, "guard", train_guard(options))


def save(options, name: str, tensors: dict):
    path = os.path.join(options.out, name + ".safetensors")
    container.write(path, tensors, {"made by": "scripts/train", "encoder": container.encoder()})
    say(f"{name}: {os.path.getsize(path)} bytes")


def fixture(options, rows: list[dict], f: features.Features, values: np.ndarray, name: str):
    """Writes what Python makes of some rows with the embedded weights, for a test that Go makes the same of them."""
    if options.out != WEIGHTS:
        return
    some = [i for i, r in enumerate(rows) if r["split"] == "held" and len(r["text"]) < 3000][::max(1, len(rows) // 400)][:40]
    path = os.path.join(features.ROOT, "classify/model/testdata", name + ".jsonl")
    with open(path, "w", encoding="utf-8") as out:
        for i in some:
            out.write(json.dumps({"text": rows[i]["text"], "want": [round(float(v), 4) for v in values[i]]}, ensure_ascii=False) + "\n")


def say(text: str):
    print(time.strftime("%H:%M:%S"), text, flush=True)


def train_category(rows: list[dict], options) -> dict:
    cache = options.cache
    rows = [r for r in rows if r["task"] == "category"]
    head = category.Head([r for r in rows if r["split"] == "train" and r["open"]], cache, SEED)
    dev = [r for r in rows if r["split"] in ("dev", "held") and r["open"]]
    f = features.read([r["text"] for r in dev], cache, "category-dev")
    head.calibrate(dev, f)
    p = head.probabilities(f)
    right = p.argmax(1) == [sets.CATEGORIES.index(r["label"]) for r in dev]
    for source in sorted({r["source"] for r in dev}):
        own = np.array([r["source"] == source for r in dev])
        say(f"category {source}: {right[own].mean():.3f} of {own.sum()}, mean confidence {p[own].max(1).mean():.3f}")
    fixture(options, dev, f, p, "category")
    return head.tensors()


def train_guard(options) -> dict:
    """The guard of all rows that may ship. Its calibration is of scores by guards that had not met the row's
    source: those that `make heldout` reports, which it makes if they are not kept."""
    judge = heldout.Judge(sources.with_folds(sources.read(options.data, ambiguous=True)), options)
    parts = judge.parts("guard", "all", GUARD_SEED)
    heldout.report("guard, each source judged by guards that have not met it", judge.rows, judge.scores("guard", "all", GUARD_SEED))
    head = guard.Head(*judge.learned(lambda r: True), GUARD_SEED)
    head.scale, head.shift = judge.calibration(parts, np.ones(len(parts), bool))
    say(f"guard: scale {head.scale.round(2).tolist()}, shift {head.shift.round(2).tolist()}")
    held = [r for r in judge.rows if r["split"] == "held"]
    fh = features.read([r["text"] for r in held], options.cache, "guard-held")
    fixture(options, held, fh, dense.sigmoid(head.logits(fh)), "guard")
    return head.tensors()


if __name__ == "__main__":
    main()
