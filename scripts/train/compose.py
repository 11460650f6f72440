"""Composed rows: attacks and instructions hidden in long innocent texts, and their innocent twins.

An attack that stands in a long text must be found wherever it stands, and a long text must not be
suspicious for being put together of two. So every way of hiding is also done with an innocent
text. Fixed seed; texts that are held out are never used.
"""

import random
import re


def split_points(text: str) -> list[int]:
    """Places between paragraphs, lines or sentences."""
    for pattern in (r"\n\s*\n", r"\n", r"(?<=[.!?。！？])\s*"):
        cuts = [m.end() for m in re.finditer(pattern, text) if 0 < m.end() < len(text)]
        if len(cuts) >= 3:
            return [0] + cuts + [len(text)]
    return [0, len(text)]


def hide(host: str, secret: str, rng: random.Random) -> str:
    """secret put between two parts of host, or at its end or beginning, as a paragraph, a line, a
    comment or a sentence."""
    cuts = split_points(host)
    at = rng.choice([len(host)] * 3 + [0] + [rng.choice(cuts)] * 6)
    style = rng.random()
    if style < 0.4:
        left, right = "\n\n", "\n\n"
    elif style < 0.7:
        left, right = "\n", "\n"
    elif style < 0.9:
        left, right = " ", " "
    else:
        left, right = rng.choice([("\n<!-- ", " -->\n"), ("\n# ", "\n"), ("\n// ", "\n"), ("\n[", "]\n"), (" (", ") "), ("\n> ", "\n"), ("\n---\n", "\n---\n")])
    return (host[:at].rstrip() + left + secret + right + host[at:].lstrip()).strip()


ASK_BEFORE = ["Summarise this:\n\n", "Translate into German:\n", "Please proofread the text below.\n\n", "What does this say?\n\n", "TL;DR?\n\n",
              "Extract the main points:\n", "Fix the grammar:\n\n", "Here is the mail I got:\n\n", "Explain this to me:\n\n", "", "", "", "",
              "请总结下面的内容：\n", "把下面的文字翻译成英文：\n", "Résume ce texte :\n\n", "Resume el texto:\n\n", "Fasse zusammen:\n\n", "Classify the sentiment of this review:\n\n",
              "Answer from this document only:\n\n", "Rewrite it in plain English:\n\n", "帮我润色一下：\n", "提取关键信息：\n\n"]
ASK_AFTER = ["", "", "", "", "", "\n\nSummarise the above.", "\n\nTranslate the text above into Spanish.", "\n\nWhat is it about?", "\n\n以上内容说了什么？", "\n\nMake a list of the names in it."]


def cut(text: str, rng: random.Random, most: int) -> str:
    """A run of at most `most` characters of text, that begins and ends between parts if it can."""
    if len(text) <= most:
        return text
    at = rng.randrange(len(text) - most)
    part = text[at:at + most]
    return part[part.find(" ") + 1:] if " " in part[:80] else part


def compose(rows: list[dict], seed: int, counts: dict[str, int]) -> list[dict]:
    """Composed rows from those of rows that may be trained on."""
    rng = random.Random(seed)
    guard = [r for r in rows if r["task"] == "guard"]
    attacks = [r for r in guard if r["label"] == "attack"]
    short = [r for r in attacks if len(r["text"]) < 700]
    payload = [r for r in guard if r["label"] == "payload"]
    users = [r for r in guard if r["label"] == "benign" and r["role"] == "user"]
    hosts = [r for r in users if len(r["text"]) > 250]
    reads = [r for r in guard if r["label"] == "document"]
    indirect = [r for r in guard if r["label"] == "indirect" and len(r["text"]) < 700]
    asks = [r for r in users if 15 < len(r["text"]) < 200]
    # Without the questions that came later, with which the same seed would choose others and make another guard.
    plain = [r for r in rows if r["task"] == "category" and len(r["text"]) > 300 and r.get("file", "") < "question6"]
    out = []

    def host(most=6000):
        pool = rng.choice([hosts, hosts, reads, plain]) or hosts
        text = rng.choice(pool)["text"]
        while rng.random() < 0.4 and len(text) < most:
            text += rng.choice(["\n\n", "\n"]) + rng.choice(rng.choice([hosts, plain, reads]) or hosts)["text"]
        return cut(text, rng, most)

    def put(text, label, role, of):
        out.append({"task": "guard", "text": text, "label": label, "role": role, "source": "composed/" + of["source"],
                    "lang": of["lang"], "split": "train", "open": True, "cluster": of["cluster"]})

    for _ in range(counts["attack"]):
        a = rng.choice(short)
        put(rng.choice(ASK_BEFORE) + hide(host(), a["text"], rng) + rng.choice(ASK_AFTER), "attack", "user", a)
    for _ in range(counts["benign"]):
        b = rng.choice(asks)
        put(rng.choice(ASK_BEFORE) + hide(host(), b["text"], rng) + rng.choice(ASK_AFTER), "benign", "user", b)
    for _ in range(counts["long"]):  # long and innocent, nothing hidden
        h = rng.choice(hosts)
        put("\n\n".join([h["text"]] + [host() for _ in range(rng.randrange(1, 4))])[:12000], "benign", "user", h)
    for _ in range(counts["indirect"]):
        s = rng.choice(rng.choice([short, payload, payload, indirect, asks]) or short)
        d = rng.choice(reads)["text"] if reads and rng.random() < 0.5 else host(3000)
        put(hide(d, s["text"], rng), "indirect", "document", s)
    for _ in range(counts["document"]):
        d = rng.choice(reads) if reads and rng.random() < 0.5 else rng.choice(hosts)
        other = cut(rng.choice(rng.choice([plain, reads, hosts]) or hosts)["text"], rng, rng.randrange(40, 400))
        put(hide(d["text"], other, rng), "document", "document", d)
    return out
