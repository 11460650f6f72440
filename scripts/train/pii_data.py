#!/usr/bin/env python3
"""Makes training text for the tagger of names and places.

    pip install Faker==40.54.0
    python scripts/train/pii_data.py --rows 60000 --out build/pii

Templates written by hand (scripts/train/pii/*.txt) are filled with values
from Faker (MIT) and from the lists of pii_values.py, with a fixed seed. Writes
train.jsonl and dev.jsonl: rows {text, spans: [{start, end, norm}], source,
lic, lang}, offsets in Unicode code points. dev has templates of its own.

What a span holds (the convention that is trained):

  PERSON     the name as written, with middle initials and "Jr.", "III". Not
             the honorific before it, not the possessive after it ("Dr.
             [Cindy Holinka]'s"), no @handle, no #hashtag, no login. A first
             or last name alone counts. Fictional people in running text
             count, those within the title of a work do not; brands, months,
             places and products named after people do not.
  TITLE      an honorific ("Dr.", "Mrs.") or an occupation that names a
             person's post ("the [Platemaker]").
  LOCATION   cities, regions and countries, without "in", "southern".
  ORG        companies, authorities, clubs, with "Inc." and its period.
  ADDRESS    the street, number, flat or P.O. box; city and ZIP code apart.
  NRP        nationality, religion, political group, as adjective or noun.
  DATE_TIME  dates, years, weekdays, times. AGE: the number alone.
  ZIP_CODE, EMAIL, PHONE, DOMAIN_NAME, CREDIT_CARD, IBAN, IP as in the text.

How the shared sets mark it: presidio-v2 and presidio-large agree with the
above but for streets (cut into pieces: "[78] Rua das Pedras 930"), for AGE
and ZIP_CODE (presidio-large leaves them out where a template has a fixed
number) and for "Mrs." (PREFIX in one, TITLE in the other). pii-syn-nano
agrees on PERSON and e-mail, and misses some; its ids are no pattern.
wnut17 marks PERSON, ORG and LOCATION as above, fictional people too, and
leaves @handles out. btc-a nearly so, with some hashtags; btc-b and btc-e mark
many handles and single signs. sec-fin5 marks the roles of a contract
("Borrower", "Lender") as PERSON and is of no use for names. So judge PERSON
on presidio-v2, presidio-large, pii-syn-nano and wnut17.
"""
import argparse
import json
import os
import pathlib
import random
import re
import sys

import pii_values as values

SLOT = re.compile(r"\[\[([a-z_]+)(?:\.(\d+))?\]\]")


def read_templates(folder):
    """Returns [(lang, text)] of all files: header lines, then texts between
    lines that are exactly %%."""
    templates = []
    for path in sorted(folder.glob("*.txt")):
        header, *texts = re.split(r"^%%$\n?", path.read_text(encoding="utf-8"), flags=re.M)
        lang = re.search(r"^lang: (\S+)$", header, flags=re.M).group(1)
        for text in texts:
            if text.strip():
                templates.append((lang, text.strip("\n")))
    return templates


def fill(template, source):
    """Returns the text of a template with its slots filled, and its spans.
    [[person.1]] is the same value wherever it stands in the template."""
    text, spans, known, at = "", [], {}, 0
    for slot in SLOT.finditer(template):
        text += template[at:slot.start()]
        at = slot.end()
        kind, number = slot.groups()
        if number is None or (kind, number) not in known:
            known[kind, number] = source.make(kind, number, known)
        for piece, norm in known[kind, number]:
            if norm:
                spans.append({"start": len(text), "end": len(text) + len(piece), "norm": norm})
            text += piece
    return text + template[at:], spans


def recase(text, spans, change):
    """Changes the case of a text where that keeps its length."""
    other = "".join(c2 if len(c2 := change(c)) == 1 else c for c in text)
    return other, spans


def tokenise(text, spans):
    """Parts signs from words by spaces, as sets cut into tokens are."""
    out, moved = [], []
    for i, c in enumerate(text):
        if c in ".,!?:;()\"'" and out and out[-1] not in " \n":
            out.append(" ")
        moved.append(len(out))
        out.append(c)
        if c in ".,!?:;()\"'" and i + 1 < len(text) and text[i + 1] not in " \n":
            out.append(" ")
    spans = [dict(s, start=moved[s["start"]], end=moved[s["end"] - 1] + 1) for s in spans]
    return "".join(out), spans


def vary(text, spans, lang, rng):
    """Returns the text as it is, in small letters, in capitals, or cut into
    tokens."""
    chance = rng.random()
    cased = lang not in ("zh", "ja", "ko", "ar", "hi", "he", "th", "fa")
    if cased and chance < 0.13:
        return recase(text, spans, str.lower)
    if cased and chance < 0.18:
        return recase(text, spans, str.upper)
    if cased and chance < 0.26 and "\n" not in text and "{" not in text:
        return tokenise(text, spans)
    return text, spans


def check(text, spans):
    """Fails if a span is out of order, out of bounds or has space around it."""
    end = 0
    for s in spans:
        value = text[s["start"]:s["end"]]
        if s["start"] < end or not value or value != value.strip():
            raise ValueError(f"bad span {s} {value!r} in {text!r}")
        end = s["end"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    here = pathlib.Path(__file__).parent
    parser.add_argument("--rows", type=int, default=60000, help="rows of train; dev has a tenth")
    parser.add_argument("--seed", type=int, default=4)
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("build/pii"))
    args = parser.parse_args()

    rng = random.Random(args.seed)
    source = values.Source(rng, args.seed)
    templates = read_templates(here / "pii")
    rng.shuffle(templates)
    held = len(templates) // 10
    args.out.mkdir(parents=True, exist_ok=True)
    for part, own, rows in (("dev", templates[:held], args.rows // 10), ("train", templates[held:], args.rows)):
        # Templates in turn, so that each is filled as often as any; one
        # without slots is the same each time and comes more rarely.
        turns = [t for k in range(8) for t in own if k == 0 or SLOT.search(t[1])]
        with open(args.out / f"{part}.jsonl", "w", encoding="utf-8") as out:
            for n in range(rows):
                lang, template = turns[n % len(turns)]
                source.lang = lang
                text, spans = vary(*fill(template, source), lang, rng)
                check(text, spans)
                row = {"text": text, "spans": spans, "source": "templates", "lic": "Apache-2.0", "lang": lang}
                out.write(json.dumps(row, ensure_ascii=False) + "\n")
    langs = sorted({lang for lang, _ in templates})
    print(f"{len(templates)} templates in {len(langs)} languages ({' '.join(langs)}), {held} of them held out")


if __name__ == "__main__":
    # Faker's Italian towns come out of a set, whose order hangs on the hash seed.
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "PYTHONHASHSEED": "0"})
    main()
