"""Makes classify/language/languages.bin, what the language signal knows.

    pip download --no-deps py3langid==0.3.0 stopwordsiso==0.7.0
    python scripts/train/language.py py3langid-*.whl stopwordsiso-*.whl

From py3langid (BSD; langid.py of Lui and Baldwin) it takes the log
probabilities of byte n-grams by language, for the scripts that several
languages share; from stopwords-iso (MIT) the small words, to which
language_words.txt adds ours. Every other script settles its language.

The file, little-endian: for each script u8 columns (0: no more scripts), their
codes of 2 bytes, u16 grams, u32 keys ascending (the bytes of the gram, the
first lowest), u8 [grams][columns] log probabilities in steps of STEP above the
lowest. Then u16 sets, u64 [sets] of the columns over all scripts that have a
word, u32 words, u64 hashes (FNV-1a) ascending, u16 set of each.
"""

import json
import lzma
import pathlib
import pickle
import struct
import sys
import zipfile

STEP = 0.0625
SCRIPTS = {
    "latin": "af az ca cs cy da de en es et eu fi fr ga gl hr hu id is it lt lv ms mt nb nn no nl pl pt ro sk sl sq sv sw tl tr vi",
    "cyrillic": "be bg kk ky mk mn ru sr uk",
    "arabic": "ar fa ps ug ur",
    "devanagari": "hi mr ne",
    "bengali": "as bn",
}
# First bytes of the letters of each script in UTF-8.
LEADS = {
    "latin": {0xC3, 0xC4, 0xC5, 0xC6, 0xC7, 0xC8, 0xC9, 0xE1},
    "cyrillic": {0xD0, 0xD1, 0xD2, 0xD3},
    "arabic": {0xD8, 0xD9, 0xDA, 0xDB},
    "devanagari": {0xE0},
    "bengali": {0xE0},
}
SAME = {"nb": "no", "nn": "no"}  # written forms of one language


def load(wheel):
    """The grams, as bytes, and their log probabilities [gram][language]."""
    with zipfile.ZipFile(wheel) as z:
        model = lzma.decompress(z.read("py3langid/data/model.plzma"))
    log, prior, languages, moves, output = pickle.loads(model)
    count = len(prior)
    # The grams are the edges of the automaton's tree: the first way to a state.
    way, queue = {0: b""}, [0]
    for state in queue:
        for byte in range(256):
            to = moves[state * 256 + byte]
            if to not in way:
                way[to] = way[state] + bytes([byte])
                queue.append(to)
    grams = {}
    for state, features in output.items():
        for f in features:
            if f not in grams or len(way[state]) < len(grams[f]):
                grams[f] = way[state]
    rows = {g: log[f * count : (f + 1) * count] for f, g in grams.items()}
    return languages, rows


def belongs(gram, script):
    """Whether a gram can stand in a text of this script and says something."""
    high = [b for b in gram if b >= 0x80]
    if script == "latin":
        return all(b < 0xC0 or b in LEADS[script] for b in high)
    if not high or any(b >= 0xC0 and b not in LEADS[script] for b in high):
        return False
    if script in ("devanagari", "bengali"):
        block = {"devanagari": (0xA4, 0xA5), "bengali": (0xA6, 0xA7)}[script]
        return all(gram[i + 1] in block for i in range(len(gram) - 1) if gram[i] == 0xE0)
    return not any(b >= 0xE0 for b in high)


def fnv(word):
    h = 0xCBF29CE484222325
    for b in word.encode():
        h = ((h ^ b) * 0x100000001B3) & (1 << 64) - 1
    return h


def words_of(wheel, extra):
    with zipfile.ZipFile(wheel) as z:
        words = {k: set(v) for k, v in json.loads(z.read("stopwordsiso/stopwords-iso.json")).items()}
    for line in extra.read_text("utf-8").splitlines():
        if line and line[0] != "#":
            code, own = line.split("\t")
            words.setdefault(code, set()).update(own.split())
    return words


def main(langid, stopwords):
    here = pathlib.Path(__file__).parent
    languages, rows = load(langid)
    words = words_of(stopwords, here / "language_words.txt")
    lowest = min(min(r) for r in rows.values())
    out, columns = bytearray(), []
    for script, codes in SCRIPTS.items():
        codes = codes.split()
        columns += codes
        at = [languages.index(c) for c in codes]
        grams = sorted((int.from_bytes(g, "little"), g) for g in rows if belongs(g, script))
        out += bytes([len(codes)]) + "".join(SAME.get(c, c) for c in codes).encode()
        out += struct.pack("<H", len(grams)) + struct.pack(f"<{len(grams)}I", *(k for k, _ in grams))
        for _, g in grams:
            out += bytes(min(255, round((rows[g][i] - lowest) / STEP)) for i in at)
        print(script, len(codes), "languages", len(grams), "grams")
    out += b"\0"
    table = {}
    for i, code in enumerate(columns):
        for w in words.get(SAME.get(code, code), ()):
            if w.isalpha() or not w.isascii():
                table[fnv(w.lower())] = table.get(fnv(w.lower()), 0) | 1 << i
    assert len(columns) <= 64
    sets = sorted(set(table.values()))
    hashes = sorted(table)
    out += struct.pack(f"<H{len(sets)}Q", len(sets), *sets)
    out += struct.pack(f"<I{len(hashes)}Q", len(hashes), *hashes)
    out += struct.pack(f"<{len(hashes)}H", *(sets.index(table[h]) for h in hashes))
    target = here.parent.parent / "classify" / "language" / "languages.bin"
    target.write_bytes(out)
    print(len(hashes), "words", len(sets), "sets", len(out), "bytes")


if __name__ == "__main__":
    main(*sys.argv[1:])
