"""Rows to learn from and to measure on: the public sets and the texts written for this project.

usage: rows.py DATA > eval.jsonl        the rows that `make eval` measures

Only the standard library, so that measuring needs no virtual environment. A row is a dict:
  task    category | guard
  text    what is judged; category: of a conversation what the user says, a turn a line
  label   category: one of CATEGORIES; guard: benign | attack | harmful | indirect | document
  role    guard: user, or document for tool results and documents (judged for hidden instructions)
  source  the set, or written/FAMILY
  lang    en, zh, ...
  split   train | dev | held (written texts that are never trained on) | test (of files that say so: not even calibrated with)
  asked   category: the user's turns, of written texts
  cluster a number that near duplicates share
  open    the licence allows shipping weights made from it
"""

import glob
import hashlib
import json
import os
import re
import sys

CATEGORIES = ["biology", "business", "chemistry", "computer science", "economics", "engineering", "health", "history",
              "law", "math", "other", "philosophy", "physics", "psychology"]

# Measured on, never trained on: licences that forbid it, or none stated.
REFUSED = {"cmmlu", "harmless(alpaca)", "tensor-trust-hijack", "tensor-trust", "qqp", "msrp", "sts"}
OPEN = ("Apache-2.0", "MIT", "BSD", "CC-BY-3.0", "CC-BY-4.0(upstream)", "CC-BY-4.0", "CC0")

WRITTEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data")
HELD_PERCENT = 15


def is_open(source: str, lic: str) -> bool:
    return source not in REFUSED and lic.startswith(OPEN) and "-NC" not in lic


def public(data: str):
    """The rows of the shared public sets, split as they are there."""
    for split in ("train", "dev"):
        for r in read_lines(os.path.join(data, "topic", split + ".jsonl")):
            yield {"task": "category", "text": r["text"], "options": r.get("options") or [], "label": r["label"],
                   "field": r.get("sub") or "", "source": r["source"], "lang": language(r["text"]), "split": split, "open": is_open(r["source"], r["lic"]),
                   "cluster": number(r["text"])}
        for r in read_lines(os.path.join(data, "jailbreak", split + ".jsonl")):
            label = {"harmful_request": "harmful", "indirect_payload": "payload"}.get(r["label"], r["label"])
            yield {"task": "guard", "text": r["text"], "label": label, "role": "user", "source": r["source"],
                   "lang": language(r["text"]), "split": split, "open": is_open(r["source"], r["lic"]), "cluster": number(r["text"])}


def read_lines(path: str):
    with open(path, encoding="utf-8") as f:
        for line in f:
            yield json.loads(line)


def language(text: str) -> str:
    return "zh" if len(re.findall(r"[\u4e00-\u9fff]", text)) * 4 > len(text) else "en"


def written(folder: str = WRITTEN):
    """The rows written for this project (data/*.txt), with their split."""
    rows = []
    for path in sorted(glob.glob(os.path.join(folder, "*.txt"))):
        with open(path, encoding="utf-8") as f:
            parts = re.split(r"^%%[ \t]*$", f.read(), flags=re.M)
        head = {}
        for line in parts[0].strip().splitlines():
            key, _, value = line.partition(":")
            head[key.strip()] = value.strip()
        for part in parts[1:]:
            text = part.strip()
            meta = dict(head)
            while m := re.match(r"@(family|lang|category): *(.*)\n?", text):
                meta[m[1]] = m[2].strip()
                text = text[m.end():].lstrip("\n")
            if text:
                rows.append((meta, text, os.path.basename(path)))
    known = {letters(text) for meta, text, _ in rows if "split" not in meta}
    cluster_of = iter(clusters([text for meta, text, _ in rows if "split" not in meta]))
    for meta, text, name in rows:
        if "split" not in meta:
            cluster = next(cluster_of)
            split = "held" if cluster % 100 < HELD_PERCENT else "train"
        elif meta["split"] == "test":  # so it cannot move others
            cluster, split = number(text), "test"
            if letters(text) in known:
                raise ValueError(f"cannot measure with {text!r} of {name}: another file has it, too")
        else:
            raise ValueError(f"cannot keep {name} for the split {meta['split']!r}: test is the only one")
        base = {"source": "written/" + meta["family"], "lang": meta["lang"], "split": split, "open": True, "file": name,
                "cluster": cluster}
        if meta["lang"] == "mixed":
            base["lang"] = guess_language(text)
        if meta["label"] == "question":
            if meta["category"] not in CATEGORIES:
                raise ValueError(f"cannot use category {meta['category']!r} of {name}")
            asked = [said for role, said in turns(text) if role == "user"]
            yield base | {"task": "category", "text": "\n".join(asked), "asked": asked, "options": [], "label": meta["category"]}
            if meta.get("only", "category") != "category":
                raise ValueError(f"cannot keep {name} for {meta['only']!r} alone: category is the only one")
            if "only" not in meta:
                yield base | {"task": "guard", "text": text, "label": "benign", "role": "user", "source": "written/question"}
            continue
        for role, said, label in judged(turns(text), meta["label"]):
            yield base | {"task": "guard", "text": said, "label": label, "role": role}


def long_texts():
    """Long innocent texts: the sources of the Go standard library and Python's language reference,
    in pieces of 1 to 12 KB. They come with the tools that training needs anyway, at the versions
    that go.mod and train.sh name (BSD, PSF licence)."""
    import pydoc_data.topics
    import subprocess
    root = os.path.join(subprocess.run(["go", "env", "GOROOT"], capture_output=True, text=True, check=True).stdout.strip(), "src")
    texts = [("code", os.path.relpath(p, root), p) for p in sorted(glob.glob(os.path.join(root, "**", "*.go"), recursive=True))
             if "testdata" not in p and number(os.path.relpath(p, root)) % 12 == 0]
    pieces = [("manual", topic, text) for topic, text in sorted(pydoc_data.topics.topics.items())]
    for family, name, path in texts:
        with open(path, encoding="utf-8", errors="replace") as f:
            pieces.append((family, name, f.read()))
    for family, name, text in pieces:
        at = 0
        while len(text) - at > 800:
            seed = number(f"{name} {at}")
            end = min(len(text), at + 1000 + seed % 11000)
            split = "held" if number(name) % 100 < HELD_PERCENT else "train"
            yield {"task": "guard", "text": text[at:end], "label": "benign", "role": "user", "source": "long/" + family, "lang": "en",
                   "split": split, "open": True, "cluster": number(name)}
            at = end + 20000 * (family == "code")


TURN = re.compile(r"^@(system|user|assistant|tool|document):[ \t]*", re.M)


def turns(text: str) -> list[tuple[str, str]]:
    """A text as (role, words) turns; without marks it is one user message."""
    marks = list(TURN.finditer(text))
    if not marks:
        return [("user", text)]
    out = [("user", text[:marks[0].start()].strip())] if text[:marks[0].start()].strip() else []
    for m, after in zip(marks, marks[1:] + [None]):
        said = text[m.end():after.start() if after else len(text)].strip()
        if said:
            out.append((m[1], said))
    return out


def judged(conversation: list[tuple[str, str]], label: str):
    """What the guard judges in a conversation, as serving does: the user's turns together, each
    tool result or document for itself. In an attack with a tool result or a document the attack
    lies there, and the user is innocent; an earlier answer is not judged for training."""
    user = "\n".join(said for role, said in conversation if role == "user")
    read = [said for role, said in conversation if role in ("tool", "document")]
    if label == "benign":
        for role, said in conversation:
            if role == "system":
                yield "system", said, "benign"
        if user:
            yield "user", user, "benign"
        for said in read:
            yield "document", said, "document"
    elif read:
        yield "document", "\n".join(read), "indirect"
    elif user:
        yield "user", user, "attack"
    else:
        yield "user", "\n".join(said for _, said in conversation), "attack"


def guess_language(text: str) -> str:
    """A rough guess, by script, for texts of files of mixed languages."""
    for lang, letters in (("ja", r"[\u3040-\u30ff]"), ("ko", r"[\uac00-\ud7af]"), ("zh", r"[\u4e00-\u9fff]"), ("ru", r"[\u0400-\u04ff]"),
                          ("ar", r"[\u0600-\u06ff]"), ("hi", r"[\u0900-\u097f]"), ("th", r"[\u0e00-\u0e7f]"), ("he", r"[\u0590-\u05ff]"),
                          ("el", r"[\u0370-\u03ff]")):
        if len(re.findall(letters, text)) * 5 > len(text):
            return lang
    return "xx"


def letters(text: str) -> str:
    """A text without what two writers of the same one would do differently."""
    return re.sub(r"[\W_]+", "", text.lower())


def number(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "replace")).digest()[:4], "big")


def clusters(texts: list[str]) -> list[int]:
    """The cluster of each text: a third of the word triples of the shorter of two in common makes
    them near duplicates. It is the hash of the cluster's first text, so that texts written later
    do not move those of today between training and measuring."""
    parent = list(range(len(texts)))

    def root(i):
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    index: dict[str, list[int]] = {}
    grams = []
    for i, text in enumerate(texts):
        words = re.findall(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]|\w+", text.lower())
        g = {" ".join(words[k:k + 3]) for k in range(max(1, len(words) - 2))}
        grams.append(g)
        shared: dict[int, int] = {}
        for x in g:
            for j in index.get(x, ()):
                shared[j] = shared.get(j, 0) + 1
            index.setdefault(x, []).append(i)
        for j, n in shared.items():
            if n * 3 > min(len(g), len(grams[j])):
                a, b = root(i), root(j)
                parent[max(a, b)] = min(a, b)
    return [number(texts[root(i)]) for i in range(len(texts))]


def kept_apart(data: str):
    """The rows that are not trained on."""
    for r in public(data):
        if r["split"] == "dev":
            yield r
    for r in list(written()) + list(long_texts()):
        if r["split"] in ("held", "test"):
            yield r


def hashed(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def learned() -> set[str]:
    """Of these the ones that the shipped guard has learned all the same, by their hashes (learned.py)."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "learned.txt"), encoding="utf-8") as f:
        return {line.split()[0] for line in f}


def measured(data: str):
    """What `make eval` measures."""
    known = learned()
    return (r for r in kept_apart(data) if r["task"] != "guard" or hashed(r["text"]) not in known)


if __name__ == "__main__":
    for row in measured(sys.argv[1]):
        print(json.dumps(row, ensure_ascii=False))
