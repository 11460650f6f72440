"""Trains the heads of classify/model and writes their weights.

    train.py DATA [--cache DIR] [--out DIR]

See the README beside it. One core, a fixed seed: the same rows give the same weights on the same
machine.
"""

import argparse
import os
import time

import numpy as np

import category
import compose
import container
import features
import guard
import rows as sources

SEED = 7
COMPOSED = {"attack": 2500, "benign": 2500, "long": 700, "indirect": 1500, "document": 1500}
FLAGGED = 0.7  # the shipped threshold: a score of this lets MISTAKES of the innocent texts through
MISTAKES = 0.01


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--cache", default=os.path.join(features.ROOT, ".cache/train"))
    parser.add_argument("--out", default=os.path.join(features.ROOT, "classify/model/weights"))
    parser.add_argument("--only", choices=["category", "guard"])
    options = parser.parse_args()
    os.makedirs(options.cache, exist_ok=True)

    rows = list(sources.public(options.data)) + list(sources.written())
    if options.only != "guard":
        save(options, "heads", train_category(rows, options.cache))
    if options.only != "category":
        save(options, "guard", train_guard(rows, options.cache))


def save(options, name: str, tensors: dict):
    path = os.path.join(options.out, name + ".safetensors")
    container.write(path, tensors, {"made by": "scripts/train"})
    say(f"{name}: {os.path.getsize(path)} bytes")


def say(text: str):
    print(time.strftime("%H:%M:%S"), text, flush=True)


def train_category(rows: list[dict], cache: str) -> dict:
    rows = [r for r in rows if r["task"] == "category"]
    head = category.Head([r for r in rows if r["split"] == "train" and r["open"]], cache, SEED)
    dev = [r for r in rows if r["split"] != "train"]
    f = features.read([r["text"] for r in dev], cache, "category-dev")
    head.calibrate(dev, f)
    p = head.probabilities(f)
    right = p.argmax(1) == [sources.CATEGORIES.index(r["label"]) for r in dev]
    for source in sorted({r["source"] for r in dev}):
        own = np.array([r["source"] == source for r in dev])
        say(f"category {source}: {right[own].mean():.3f} of {own.sum()}, mean confidence {p[own].max(1).mean():.3f}")
    return head.tensors()


def train_guard(rows: list[dict], cache: str) -> dict:
    seen = [r for r in rows if r["split"] == "train" and r["open"]]
    seen += compose.compose(seen, SEED, COMPOSED)
    seen = [r for r in seen if r["task"] == "guard"]
    f = features.read([r["text"] for r in seen], cache, "guard-train")
    net, linear = guard.unseen(seen, f, SEED)
    say("guard: scored by folds")
    head = guard.Head(seen, f, np.arange(len(seen)), SEED)
    dev = [r for r in rows if r["task"] == "guard" and r["split"] == "dev"]
    fd = features.read([r["text"] for r in dev], cache, "guard-dev")
    netd, lineard = head.parts(fd, np.arange(len(dev)))
    calibrate(head, seen + dev, np.r_[net, netd], np.r_[linear, lineard])
    return head.tensors()


def calibrate(head: guard.Head, rows: list[dict], net: np.ndarray, linear: np.ndarray):
    """Sets scale and shift of each output, on scores by heads that have not seen the rows. FLAGGED is
    where MISTAKES of the innocent rows lie above; the slope is the most likely one."""
    t = guard.targets(rows)
    plain = np.array([not r["source"].startswith("composed/") for r in rows])
    for k, name in enumerate(guard.OUTPUTS):
        z = net[:, k] + head.mix[k] * linear[:, k]
        no, yes = (t[:, k] == 0) & plain, (t[:, k] == 1) & plain
        at = float(np.quantile(z[no], 1 - MISTAKES)) if name in ("attack", "indirect") else 0.0
        base = np.log(FLAGGED / (1 - FLAGGED)) if name in ("attack", "indirect") else 0.0
        def loss(slope):
            p = 1 / (1 + np.exp(-np.clip((z - at) * slope + base, -30, 30)))
            return -np.log(p[yes] + 1e-9).mean() - np.log(1 - p[no] + 1e-9).mean()
        slope = float(min(np.arange(0.2, 4, 0.05), key=loss)) if yes.any() and no.any() else 1.0
        head.scale[k], head.shift[k] = slope, base - at * slope
        say(f"guard {name}: {(z[yes] > at).mean():.3f} of {yes.sum()} found, {(z[no] > at).mean():.4f} of {no.sum()} mistaken, slope {slope:.2f}")


if __name__ == "__main__":
    main()
