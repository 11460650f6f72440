"""Rows for the tagger: the shared public set, its marks brought to the tagger's types.

A row is {text, spans: [(start, end, type)] in code points, source, known, skip, split}:
known are the types that its source marks (of others nothing is learned from it), skip are spans
of which nothing is learned at all.
"""

import json
import os
import pathlib
import random
import re

TYPES = ["PERSON", "GPE", "ORGANIZATION", "NRP", "TITLE", "STREET_ADDRESS"]
NORMS = {"PERSON": "PERSON", "LOCATION": "GPE", "ORG": "ORGANIZATION", "NRP": "NRP", "TITLE": "TITLE", "PREFIX": "TITLE",
         "ADDRESS": "STREET_ADDRESS", "BANK": "ORGANIZATION"}
KNOWN = {"presidio-v2": set(TYPES), "presidio-large": set(TYPES) - {"NRP"}, "pii-syn-nano": {"PERSON", "ORGANIZATION", "TITLE"}}
NAMES = {"PERSON", "GPE", "ORGANIZATION"}
OPEN = ("MIT", "CC-BY-3.0", "CC-BY-4.0", "CC0", "Apache-2.0", "BSD")
HELD_ROWS = 1300  # made of the templates that are held out
HANDLE = re.compile(r"@ ?\w+")


def read(data):
    """The shared rows. Of two sources that dev does not have, the last fifth is kept for choosing."""
    counts = {}
    for split in ("train", "dev"):
        with open(os.path.join(data, "pii", split + ".jsonl"), encoding="utf-8") as f:
            rows = [json.loads(line) for line in f]
        rows = [r for r in rows if r["lic"].startswith(OPEN)]
        total = {}
        for r in rows:
            total[r["source"]] = total.get(r["source"], 0) + 1
        for r in rows:
            source = r["source"]
            counts[split, source] = n = counts.get((split, source), 0) + 1
            part = split
            if split == "train" and source in ("sec-fin5", "pii-syn-nano") and n > 0.8 * total[source]:
                part = "dev"
            yield convert(r, part)


def convert(r, split):
    text, spans, skip = r["text"], [], []
    handles = [m.span() for m in HANDLE.finditer(text)]
    for s in r["spans"]:
        kind = NORMS.get(s["norm"])
        a, b = s["start"], s["end"]
        if text[a:b] == "@" or any(a < h[1] and b > h[0] for h in handles):
            skip.append((a, b))
        elif kind:
            spans.append((a, b, kind))
    return {"text": text, "spans": sorted(spans), "skip": skip + handles, "source": r["source"], "split": split,
            "known": sorted(KNOWN.get(r["source"], NAMES))}


def generated(rows, seed):
    """Rows made of the written templates, train and dev (dev has templates of its own)."""
    import pii_data
    import pii_values
    rng = random.Random(seed)
    source = pii_values.Source(rng, seed)
    templates = pii_data.read_templates(pathlib.Path(__file__).parent / "pii")
    rng.shuffle(templates)
    seen, parts = {}, {"dev": [], "train": []}
    for lang, text in templates:
        seen[lang] = n = seen.get(lang, 0) + 1
        # Every tenth of a language is held out, and one of those that have few.
        parts["dev" if n % 10 == 4 else "train"].append((lang, text))
    for split, count in (("dev", HELD_ROWS), ("train", rows)):
        own = parts[split]
        # One without slots is the same each time: once a round of eight.
        turns = [t for k in range(8) for t in own if k == 0 or pii_data.SLOT.search(t[1])]
        for n in range(count):
            lang, template = turns[n % len(turns)]
            source.lang = lang
            text, spans = pii_data.fill(template, source)
            if rng.random() < 0.6:
                text, spans = pii_data.vary(text, spans, lang, rng)
            spans = [{**s, "type": s["norm"]} for s in spans]
            yield convert({"text": text, "spans": spans, "source": "templates/" + lang}, split) | {"known": TYPES}


def exchanged(rows, seed, times):
    """Copies of real rows in which other people, places and companies stand, written as those were."""
    import pii_values
    rng = random.Random(seed)
    source = pii_values.Source(rng, seed)
    source.lang = "en"
    for _ in range(times):
        for r in rows:
            if not any(kind in NAMES for _, _, kind in r["spans"]) or r["source"].startswith("sec"):
                continue
            yield exchange(r, source, rng)


def exchange(r, source, rng):
    text, at, spans = "", 0, []
    for a, b, kind in sorted(r["spans"]):
        old = r["text"][a:b]
        new = old
        if rng.random() < 0.8 and "@" not in old and "#" not in old:
            new = other(old, kind, source, rng)
        text += r["text"][at:a]
        spans.append((len(text), len(text) + len(new), kind))
        text += new
        at = b
    text += r["text"][at:]
    return {**r, "text": text, "spans": spans, "skip": [m.span() for m in HANDLE.finditer(text)]}


def other(old, kind, source, rng):
    """A value of the same kind and in the same case as old."""
    if kind == "PERSON":
        make = source.person if " " in old.strip() else rng.choice([source.first, source.first, source.last])
    elif kind == "GPE":
        make = rng.choice([source.city, source.city, source.country])
    elif kind == "ORGANIZATION":
        make = source.org
    else:
        return old
    new = "".join(piece for piece, norm in make() if norm)
    if old.islower():
        new = new.lower()
    elif old.isupper() and len(old) > 3:
        new = new.upper()
    return new


def joined(rows, seed, count):
    """Rows of several others, so that names stand in the middle of longer texts too."""
    rng = random.Random(seed)
    for _ in range(count):
        parts = rng.sample(rows, rng.randint(2, 4))
        if len({tuple(p["known"]) for p in parts}) > 1:
            continue
        text, spans, skip, gap = "", [], [], rng.choice([" ", "\n", "\n\n", "\n- "])
        for p in parts:
            text += gap if text else ""
            spans += [(a + len(text), b + len(text), kind) for a, b, kind in p["spans"]]
            skip += [(a + len(text), b + len(text)) for a, b in p["skip"]]
            text += p["text"]
        yield {**parts[0], "text": text, "spans": spans, "skip": skip, "source": "joined"}
