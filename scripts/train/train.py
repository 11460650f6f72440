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
import compose
import container
import dense
import features
import guard
import rows as sources

SEED = 7
GUARD_SEED = 27  # of eleven that were tried with these rows, the one that finds most at the fewest mistakes
COMPOSED = {"attack": 2500, "benign": 2500, "long": 700, "indirect": 1500, "document": 1500}
FLAGGED = 0.7  # the shipped threshold: this share of the innocent texts of a script (features.Features.script) scores higher
MISTAKES = {"attack": (0.0145, 0.0185, 0.0185), "indirect": (0.08, 0.08, 0.08)}
WEIGHTS = os.path.join(features.ROOT, "classify/model/weights")
FEWEST = 150  # innocent texts of a script that set its threshold; with fewer, those of all do


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--cache", default=os.path.join(features.ROOT, ".cache/train"))
    parser.add_argument("--out", default=WEIGHTS)
    parser.add_argument("--only", choices=["category", "guard"])
    options = parser.parse_args()
    os.makedirs(options.cache, exist_ok=True)
    os.makedirs(options.out, exist_ok=True)

    rows = list(sources.public(options.data)) + list(sources.written()) + list(sources.long_texts())
    if options.only != "guard":
        save(options, "heads", train_category(rows, options))
    if options.only != "category":
        save(options, "guard", train_guard(rows, options))


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
    right = p.argmax(1) == [sources.CATEGORIES.index(r["label"]) for r in dev]
    for source in sorted({r["source"] for r in dev}):
        own = np.array([r["source"] == source for r in dev])
        say(f"category {source}: {right[own].mean():.3f} of {own.sum()}, mean confidence {p[own].max(1).mean():.3f}")
    fixture(options, dev, f, p, "category")
    return head.tensors()


def train_guard(rows: list[dict], options) -> dict:
    cache = options.cache
    seen = [r for r in rows if r["split"] == "train" and r["open"]]
    seen += compose.compose(seen, SEED, COMPOSED)
    seen = [r for r in seen if r["task"] == "guard"]
    f = features.read([r["text"] for r in seen], cache, "guard-train")
    net, linear = guard.unseen(seen, f, GUARD_SEED)
    say("guard: scored by folds")
    head = guard.Head(seen, f, np.arange(len(seen)), GUARD_SEED)
    dev = [r for r in rows if r["task"] == "guard" and r["split"] == "dev" and r["open"]]
    fd = features.read([r["text"] for r in dev], cache, "guard-dev")
    netd, lineard = head.parts(fd, np.arange(len(dev)))
    calibrate(head, seen + dev, np.r_[net, netd], np.r_[linear, lineard], np.r_[f.script, fd.script])
    held = [r for r in rows if r["task"] == "guard" and r["split"] == "held"]
    fh = features.read([r["text"] for r in held], cache, "guard-held")
    fixture(options, held, fh, dense.sigmoid(head.logits(fh)), "guard")
    return head.tensors()


def calibrate(head: guard.Head, rows: list[dict], net: np.ndarray, linear: np.ndarray, script: np.ndarray):
    """Sets scale and shift of each output, on scores by heads that have not seen the rows. FLAGGED is
    where MISTAKES of the innocent rows of a script lie above; the slope is the most likely one."""
    t = guard.targets(rows)
    plain = np.array([not guard.is_composed(r) and r["role"] != "system" for r in rows])
    for k, name in enumerate(guard.OUTPUTS):
        strict = name in MISTAKES
        base = np.log(FLAGGED / (1 - FLAGGED)) if strict else 0.0
        z = net[:, k] + head.mix[script, k] * linear[:, k]
        no, yes = (t[:, k] == 0) & plain, (t[:, k] == 1) & plain
        at = np.zeros(guard.SCRIPTS)
        for s in range(guard.SCRIPTS):
            own = no & (script == s)
            if strict and own.sum() > FEWEST:
                at[s] = np.quantile(z[own], 1 - MISTAKES[name][s])
            elif strict:
                at[s] = np.quantile(z[no], 1 - MISTAKES[name][s])
        z = z - at[script]
        def loss(slope):
            p = dense.sigmoid(z * slope + base)
            return -np.log(p[yes] + 1e-9).mean() - np.log(1 - p[no] + 1e-9).mean()
        slope = float(min(np.arange(0.2, 4, 0.05), key=loss))
        head.scale[:, k], head.shift[:, k] = slope, base - at * slope
        say(f"guard {name}: {(z[yes] > 0).mean():.3f} of {yes.sum()} found, {(z[no] > 0).mean():.4f} of {no.sum()} mistaken, slope {slope:.2f}")


if __name__ == "__main__":
    main()
