#!/usr/bin/env python3
"""Trains the tagger of names: classify/tagger/weights/tagger.safetensors.

usage: tagger.py --data DATA [--work DIR] [--out FILE]

DATA/pii holds the public rows (see tagrows.py), DATA/topic and DATA/jailbreak are texts in which
words are counted. More rows are made from written templates (pii_data.py) and by exchanging the
names in real rows. What the network is given for a word comes from the Go code (tagfeatures), so
that training sees what serving sees. Packages: requirements-tagger.txt. One core, about 15 minutes.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import subprocess
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import container
import taglists
import tagrows
from tagrows import TYPES

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent.parent
SEED = 4
ROW, BITS = 512, 104  # as classify/tagger/input.go: the table's row, and bits, the lists' first
HIDDEN, WIDTH, DILATIONS = 128, 5, (1, 2, 4)
TAGS = 1 + 2 * len(TYPES)
EPOCHS, RATE, DECAY = 8, 2e-3, 0.02
DROPOUT = 0.3
MADE = 0.5     # weight of a row made from a template: there are hundreds of templates, not thousands
AVERAGE = 0.998  # of the weights over the steps: the mean is steadier than the last
FORGET = 0.15  # of the words count as in no list of names: unseen text has many such
NAME_LISTS = [k * 16 + bit for k in range(3) for bit in (taglists.FIRST, taglists.LAST, taglists.CITY, taglists.CITY_PART, taglists.COUNTRY,
              taglists.PEOPLE, taglists.ORG, taglists.FREQUENT)]
NEVER = -1e4
RECORD = np.dtype([("start", "<i4"), ("end", "<i4"), ("hash", "<u8"), ("row", "<f2", (ROW,)), ("bits", "u1", (BITS,))])


# Rows.


def gather(data, rows):
    """All rows: real ones, those from templates, and variants."""
    real = list(tagrows.read(data))
    train = [r for r in real if r["split"] == "train"]
    made = list(tagrows.generated(rows, SEED))
    filled = [r for r in made if r["split"] == "train"]
    presidio = [r for r in train if r["source"].startswith("presidio")]
    made += tagrows.joined(filled, SEED + 2, rows // 10)
    for r in made:
        r["weight"] = MADE
    made += tagrows.exchanged(train, SEED + 1, 1)
    made += tagrows.joined(presidio, SEED + 3, 300)
    return real, made


def texts(data):
    for name in ("topic", "jailbreak", "pii"):
        with open(os.path.join(data, name, "train.jsonl"), encoding="utf-8") as f:
            for line in f:
                r = json.loads(line)
                if r["lic"].startswith(tagrows.OPEN) and "-NC" not in r["lic"]:
                    yield r["text"]


def look(rows, binary, lists, path):
    """Adds the inputs of each row's words: r["words"], a view of a file."""
    with open(path + ".jsonl", "w", encoding="utf-8") as f:
        for r in rows:
            f.write(json.dumps({"text": r["text"]}) + "\n")
    with open(path + ".jsonl", encoding="utf-8") as source, open(path, "wb") as out:
        subprocess.run([binary, "-lists", lists], stdin=source, stdout=out, check=True)
    data, at = np.memmap(path, np.uint8, "r"), 0
    for r in rows:
        n = int(np.frombuffer(data[at:at + 4], "<u4")[0])
        r["words"] = np.frombuffer(data[at + 4:at + 4 + n * RECORD.itemsize], RECORD)
        at += 4 + n * RECORD.itemsize
    if at != len(data):
        raise ValueError(f"{path} has {len(data)} bytes, read {at}")


def mark(r):
    """Adds r["tags"] and r["ignore"] of each word, and r["gold"], the spans in bytes."""
    place = np.zeros(len(r["text"]) + 1, np.int64)
    place[1:] = np.cumsum([len(c.encode()) for c in r["text"]])
    start, end = r["words"]["start"], r["words"]["end"]
    r["tags"], r["ignore"], r["gold"] = np.zeros(len(start), np.int64), np.zeros(len(start), bool), set()
    for a, b, kind in r["spans"]:
        a, b, tag = int(place[a]), int(place[b]), 1 + 2 * TYPES.index(kind)
        r["gold"].add((a, b, kind))
        within = np.flatnonzero((start < b) & (end > a))
        r["tags"][within] = tag + 1
        r["tags"][within[:1]] = tag
    for a, b in r["skip"]:
        r["ignore"][(start < place[b]) & (end > place[a])] = True


# The network.


def grammar():
    """What may follow and begin: a name goes on only with its own type."""
    follow, first = torch.zeros(TAGS, TAGS), torch.zeros(TAGS)
    for b in range(2, TAGS, 2):
        first[b] = NEVER
        for a in range(TAGS):
            if a not in (b - 1, b):
                follow[a, b] = NEVER
    return follow, first


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.input = nn.Linear(ROW + BITS, HIDDEN)
        self.layers = nn.ModuleList([nn.Conv1d(HIDDEN, HIDDEN, WIDTH, padding=WIDTH // 2 * d, dilation=d) for d in DILATIONS])
        self.output = nn.Linear(HIDDEN, TAGS)
        self.learned = nn.Parameter(torch.zeros(TAGS, TAGS))
        self.dropout = nn.Dropout(DROPOUT)
        follow, first = grammar()
        self.register_buffer("grammar", follow)
        self.register_buffer("first", first)

    def forward(self, x, mask):
        """Scores [batch, words, TAGS] of inputs [batch, words, ROW+BITS]; mask is 1 for words."""
        h = F.relu(self.input(self.dropout(x))) * mask[..., None]
        for layer in self.layers:
            h = (h + F.relu(layer(self.dropout(h).transpose(1, 2)).transpose(1, 2))) * mask[..., None]
        return self.output(self.dropout(h))

    def follow(self):
        return self.learned + self.grammar

    def loss(self, scores, tags, mask, sure):
        """Minus the log-likelihood of each row's tags (CRF); where sure is 0 any tag will do."""
        right = torch.full_like(scores, NEVER).scatter(2, tags[..., None], 0.0)
        right = torch.where(sure[..., None] > 0, right, torch.zeros_like(right))
        return self.total(scores, mask) - self.total(scores + right, mask)

    def total(self, scores, mask):
        follow = self.follow()[None]
        sums = scores[:, 0] + self.first
        for t in range(1, scores.shape[1]):
            longer = torch.logsumexp(sums[:, :, None] + follow, 1) + scores[:, t]
            sums = torch.where(mask[:, t, None] > 0, longer, sums)
        return torch.logsumexp(sums, 1)


def stack(rows, training, rng):
    """Tensors of a batch: inputs, mask, tags, sure, and what takes out the types a source does not mark."""
    length = max(len(r["words"]) for r in rows)
    x = np.zeros((len(rows), length, ROW + BITS), np.float32)
    mask, sure = (np.zeros((len(rows), length), np.float32) for _ in range(2))
    tags, out = np.zeros((len(rows), length), np.int64), np.zeros((len(rows), 1, TAGS), np.float32)
    for i, r in enumerate(rows):
        n = len(r["words"])
        bits = r["words"]["bits"]
        if training:
            bits = bits.copy()
            bits[np.ix_(rng.random(n) < FORGET, NAME_LISTS)] = 0
        x[i, :n, :ROW], x[i, :n, ROW:] = r["words"]["row"], bits
        mask[i, :n], tags[i, :n], sure[i, :n] = 1, r["tags"], ~r["ignore"]
        for k, kind in enumerate(TYPES):
            if kind not in r["known"]:
                out[i, 0, 1 + 2 * k:3 + 2 * k] = NEVER
    return [torch.from_numpy(a) for a in (x, mask, tags, sure, out)]


def batches(rows, rng):
    """Rows of similar length together, at most 48 and about 2,500 words."""
    rows, all_batches = rng.permutation(len(rows)).tolist(), []
    for i in range(0, len(rows), 2048):
        chunk, batch = sorted(rows[i:i + 2048], key=LENGTH.__getitem__), []
        for k in chunk:
            if batch and (len(batch) == 48 or (len(batch) + 1) * LENGTH[k] > 2500):
                all_batches.append(batch)
                batch = []
            batch.append(k)
        all_batches.append(batch)
    return [all_batches[i] for i in rng.permutation(len(all_batches))]


LENGTH = []


def train(rows, epochs):
    torch.manual_seed(SEED)
    rng = np.random.default_rng(SEED)
    LENGTH[:] = [len(r["words"]) for r in rows]
    net = Tagger()
    optimiser = torch.optim.AdamW(net.parameters(), lr=RATE, weight_decay=DECAY, fused=True)  # its roots are exact
    mean = [p.detach().clone() for p in net.parameters()]
    step, steps = 0, epochs * len(batches(rows, np.random.default_rng(0)))
    for epoch in range(epochs):
        net.train()
        began, losses, words = time.time(), 0.0, 0
        for batch in batches(rows, rng):
            for group in optimiser.param_groups:
                group["lr"] = RATE * min(1, step / 200) * (0.5 * (1 + np.cos(np.pi * min(1, step / steps))) + 0.02)
            step += 1
            batch = [rows[i] for i in batch]
            x, mask, tags, sure, out = stack(batch, True, rng)
            weight = torch.tensor([r.get("weight", 1.0) for r in batch])
            total = (net.loss(net(x, mask) + out, tags, mask, sure) * weight).sum()
            optimiser.zero_grad()
            (total * 4 / mask.sum()).backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimiser.step()
            with torch.no_grad():
                keep = min(AVERAGE, step / (step + 10))
                for m, p in zip(mean, net.parameters()):
                    m.lerp_(p, 1 - keep)
            losses, words = losses + total.item(), words + mask.sum().item()
        print(f"epoch {epoch + 1}: loss {losses / words:.4f} a word, {time.time() - began:.0f} s", flush=True)
    with torch.no_grad():
        for m, p in zip(mean, net.parameters()):
            p.copy_(m)
    return net.eval()


# Finding.


def best(scores, follow, first):
    """The row of tags whose scores add up to the most."""
    sums, before = scores[0] + first, []
    for row in scores[1:]:
        ways = sums[:, None] + follow
        before.append(ways.argmax(0))
        sums = ways.max(0) + row
    tags = [int(sums.argmax())]
    for step in reversed(before):
        tags.append(int(step[tags[-1]]))
    return tags[::-1]


def spans(tags):
    """(first word, behind the last, type) of each name."""
    i = 0
    while i < len(tags):
        end = i + 1
        if tags[i] % 2:
            while end < len(tags) and tags[end] == tags[i] + 1:
                end += 1
            yield i, end, (tags[i] - 1) // 2
        i = end


def logit(scores, tags, follow, first, i, end):
    """How sure a name at words [i, end) is: as classify/tagger/decode.go computes it."""
    least = np.inf
    for t in range(i, min(end + 1, len(tags))):
        row = scores[t] + (first if t == 0 else follow[tags[t - 1]])
        if t + 1 < len(tags):
            row = row + follow[:, tags[t + 1]]
        others = np.exp(np.delete(row, tags[t]).astype(np.float64)).sum()
        least = min(least, row[tags[t]] - np.log(others + 1e-30))
    return least


def judge(net, rows):
    """Adds r["found"]: {(start, end, type): logit} of each row, names in ignored words left out."""
    follow, first = net.follow().detach().numpy(), net.first.numpy()
    rows = sorted((r for r in rows if len(r["words"])), key=lambda r: len(r["words"]))
    for i in range(0, len(rows), 64):
        part = rows[i:i + 64]
        with torch.no_grad():
            x, mask, *_ = stack(part, False, None)
            scores = net(x, mask).numpy()
        for r, s in zip(part, scores):
            s = s[:len(r["words"])]
            r["scores"], r["best"], r["found"] = s, best(s, follow, first), {}
            for a, b, kind in spans(r["best"]):
                if not r["ignore"][a:b].any():
                    key = int(r["words"]["start"][a]), int(r["words"]["end"][b - 1]), TYPES[kind]
                    r["found"][key] = logit(s, r["best"], follow, first, a, b)


def report(rows):
    """Prints exact-span F1 by type and source."""
    counts = collections.defaultdict(lambda: np.zeros(3, int))
    for r in rows:
        source = "templates" if r["source"].startswith("templates") else r["source"]
        for kind in r["known"]:
            found = {k for k in r.get("found", {}) if k[2] == kind}
            gold = {k for k in r["gold"] if k[2] == kind}
            counts[kind, source] += len(found & gold), len(found), len(gold)
    f1 = lambda c: 200 * c[0] / max(1, c[1] + c[2])
    for kind in TYPES:
        of = {s: c for (k, s), c in sorted(counts.items()) if k == kind}
        real = sum(c for s, c in of.items() if s != "templates")
        print(f"{kind:15} real {f1(real):5.1f} ", "  ".join(f"{s} {f1(c):.1f} ({c[0]}/{c[1]}/{c[2]})" for s, c in of.items()))


def calibrate(rows):
    """Slope and one offset a type that turn logits into probabilities (Platt)."""
    data = [(v, TYPES.index(k[2]), k in r["gold"]) for r in rows for k, v in r.get("found", {}).items() if k[2] in r["known"]]
    x, kind, right = (torch.tensor(a) for a in zip(*data))
    slope, offset = torch.ones(1, requires_grad=True), torch.zeros(len(TYPES), requires_grad=True)
    optimiser = torch.optim.LBFGS([slope, offset], max_iter=100)

    def closure():
        optimiser.zero_grad()
        loss = F.binary_cross_entropy_with_logits(x.float().clip(-20, 20) * slope + offset[kind], right.float()) + 0.001 * (offset ** 2).sum()
        loss.backward()
        return loss

    optimiser.step(closure)
    return np.concatenate([slope.detach().numpy(), offset.detach().numpy()]).astype(np.float32)


def export(net, slots, calibration, path):
    tensors = {"lists": slots}
    tensors |= container.layer("input", net.input.weight.detach().numpy(), net.input.bias.detach().numpy())
    for i, layer in enumerate(net.layers):
        weight = layer.weight.detach().numpy().transpose(0, 2, 1).reshape(HIDDEN, -1)  # [out][width][in]
        tensors |= container.layer(f"layer{i}", weight, layer.bias.detach().numpy())
    tensors |= container.layer("output", net.output.weight.detach().numpy(), net.output.bias.detach().numpy())
    tensors["follow"] = net.follow().detach().numpy()
    tensors["first"] = net.first.numpy()
    tensors["calibration"] = calibration
    container.write(path, tensors, {"types": " ".join(TYPES), "encoder": container.encoder()})


def fixture(rows, path):
    """A few rows that the Go test compares: scores of every word as computed here."""
    with open(path, "w", encoding="utf-8") as f:
        for r in rows:
            scores = [[round(float(v), 3) for v in row] for row in r["scores"]]
            f.write(json.dumps({"text": r["text"], "scores": scores, "tags": r["best"]}, ensure_ascii=False) + "\n")


def names(rows, path):
    """Rows with their marks that the Go test measures on: every third in English, all others."""
    back = {v: k for k, v in tagrows.NORMS.items() if k not in ("PREFIX", "BANK")}
    english = [r for r in rows if r["source"] == "templates/en"][::3]
    with open(path, "w", encoding="utf-8") as f:
        for r in english + [r for r in rows if r["source"] != "templates/en"]:
            marks = [{"start": a, "end": b, "norm": back[kind]} for a, b, kind in r["spans"]]
            row = {"text": r["text"], "lang": r["source"].split("/")[1], "source": "templates", "spans": marks}
            f.write(json.dumps(row, ensure_ascii=False) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default=str(ROOT.parent / "shared" / "data"))
    parser.add_argument("--work", default=str(ROOT / ".cache" / "tagger"))
    parser.add_argument("--out", default=str(ROOT / "classify" / "tagger" / "weights" / "tagger.safetensors"))
    parser.add_argument("--fixtures", default=str(ROOT / "classify" / "tagger" / "testdata"), help="folder of the Go tests' rows; empty: they are not written")
    parser.add_argument("--rows", type=int, default=5000, help="rows made from templates")
    parser.add_argument("--epochs", type=int, default=EPOCHS)
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.backends.mkldnn.enabled = False  # its loops differ from processor to processor, see env.sh
    os.makedirs(args.work, exist_ok=True)

    binary, lists = os.path.join(args.work, "tagfeatures"), os.path.join(args.work, "lists.bin")
    subprocess.run(["go", "build", "-o", binary, "./scripts/train/tagfeatures"], cwd=ROOT, check=True)
    slots = taglists.build(texts(args.data), binary)
    slots.tofile(lists)
    real, made = gather(args.data, args.rows)
    rows = real + made
    look(rows, binary, lists, os.path.join(args.work, "features.bin"))
    rows = [r for r in rows if len(r["words"])]
    for r in rows:
        mark(r)
    print(f"{len(rows)} rows, {sum(len(r['words']) for r in rows)} words", flush=True)

    net = train([r for r in rows if r["split"] == "train"], args.epochs)
    dev = [r for r in rows if r["split"] == "dev"]
    judge(net, dev)
    report(dev)
    export(net, slots, calibrate(dev), args.out)
    made = [r for r in dev if r["source"].startswith("templates")]
    if args.fixtures:
        fixture(made[::max(1, len(made) // 40)], os.path.join(args.fixtures, "tagger.jsonl"))
        names(made, os.path.join(args.fixtures, "names.jsonl"))
    print(f"{args.out}: {os.path.getsize(args.out)} bytes")


if __name__ == "__main__":
    # Lists out of sets must come in the same order in every run.
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": "0"})
    main()
