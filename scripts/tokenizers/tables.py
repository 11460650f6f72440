"""Writes tokenize/unicode.bin: what the reference library says of every code point.

The library's own tables (Oniguruma's classes, the decompositions of one crate, the categories of
another, Rust's lower case, the grapheme clusters of a third) are of different Unicode versions; Go's
are of yet another. So each code point is asked of the library itself, and the answers are the table.

    tables.py OUT        needs the pinned `tokenizers` (scripts/parts.sh tokenizers)

The file is seven lists, each `uvarint length`, then its entries; code points are uvarint differences
to the one before, starting from 0:
  classes    (difference, class byte): runs of one class, each from its first code point on
  bert       the same for BertNormalizer and BertPreTokenizer, and what counts as part of a word beside
             an added token, and to Digits
  combining  (difference, class): code points whose canonical combining class is not 0
  decompose  (difference, flags, first, second): one step of the canonical decomposition; second is 0
             for a single; flag 1: the two compose to it again
  lower      (difference, n, n code points): those that lower case changes
  compat     (difference, n, n code points): those that NFKD changes otherwise than NFD
  clusters   (difference, byte): runs of what a code point does in a grapheme cluster
"""
import struct
import sys
import unicodedata

from tokenizers import Regex, normalizers, pre_tokenizers

POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
ALL = "".join(map(chr, POINTS))

# The classes, as tokenize/unicode.go names them.
OTHER, SPACE, UPPER, LOWER, LETTER, MARK, NUMBER, PUNCTUATION, SYMBOL = range(9)
# What Bert does with a code point, whether it is \w to Rust, whether Digits takes it, and whether
# StripAccents removes it; bits.
DROPPED, BLANK, NONSPACING, PUNCT, WHITE, WORD, NUMERIC, ACCENT = 1, 2, 4, 8, 16, 32, 64, 128
# What it does in a grapheme cluster; bits.
JOINS, CONTROL, PREPEND, PICTURE, EXTENDS, CONSONANT, LINKER, CONJOINS = 1, 2, 4, 8, 16, 32, 64, 128


def uvarint(n):
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def members(pattern):
    """The code points that a character class of the library's regular expressions holds."""
    return set(map(ord, normalizers.Replace(Regex(f"[^{pattern}]"), "").normalize_str(ALL)))


def classes():
    table = {c: OTHER for c in POINTS}
    for pattern, name in (
        (r"\p{Lu}\p{Lt}", UPPER), (r"\p{Ll}", LOWER), (r"\p{Lm}\p{Lo}", LETTER), (r"\p{M}", MARK),
        (r"\p{N}", NUMBER), (r"\p{P}", PUNCTUATION), (r"\p{S}", SYMBOL), (r"\s", SPACE),
    ):
        for c in members(pattern):
            assert table[c] == OTHER, hex(c)
            table[c] = name
    return table


def bert():
    clean = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    strip = normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)
    split = pre_tokenizers.BertPreTokenizer()
    words = pre_tokenizers.Whitespace()
    digits = pre_tokenizers.Digits(individual_digits=True)
    accents = normalizers.StripAccents()
    table = {}
    for c in POINTS:
        ch, flags = chr(c), 0
        cleaned = clean.normalize_str(ch)
        if cleaned == "":
            flags |= DROPPED
        elif cleaned != ch or ch == " ":
            assert cleaned == " ", hex(c)
            flags |= BLANK
        if strip.normalize_str(ch) == "":
            flags |= NONSPACING
        pieces = [p for p, _ in split.pre_tokenize_str("a" + ch + "a")]
        if len(pieces) == 3:
            flags |= PUNCT
        elif len(pieces) == 2:
            flags |= WHITE
        if words.pre_tokenize_str("a" + ch)[0][0] == "a" + ch:
            flags |= WORD
        if len(digits.pre_tokenize_str("a" + ch)) == 2:
            flags |= NUMERIC
        if accents.normalize_str(ch) == "":
            flags |= ACCENT
        table[c] = flags
    return table


def runs(table):
    entries, last, at = [], None, 0
    for c in POINTS:
        if table[c] != last:
            entries.append(uvarint(c - at) + bytes([table[c]]))
            last, at = table[c], c
    return entries


def combining(nfd):
    """Combining classes by what the library swaps: r before c swaps when 0 < class(c) < class(r)."""
    ranks = {}  # class -> a code point that has it, also to the library
    low = "\u0334"  # class 1, the lowest
    for c in POINTS:
        k, ch = unicodedata.combining(chr(c)), chr(c)
        if k and k not in ranks and nfd(ch) == ch and (k == 1 or nfd(ch + low) == low + ch):
            ranks[k] = ch
    order = sorted(ranks)
    high = ranks[order[-1]]
    table = {}
    for c in POINTS:
        ch = chr(c)
        if nfd(ch) != ch:
            continue
        if nfd(high + ch) == ch + high and ch != high:  # below the highest
            table[c] = max(k for k in order if ranks[k] == ch or nfd(ranks[k] + ch) != ch + ranks[k])
        elif nfd(ch + low) == low + ch:  # the highest itself
            table[c] = order[-1]
    return table


def decompose(nfd, nfc):
    table = {}
    for c in POINTS:
        full = nfd(chr(c))
        if full == chr(c) or 0xAC00 <= c <= 0xD7A3:  # Hangul is computed
            continue
        if len(full) == 1:
            table[c] = (0, ord(full), 0)
            continue
        # One step: the last, and the composition of those before it. Where those do not compose (an
        # excluded one), unicodedata knows the step.
        head = nfc(full[:-1])
        if len(head) != 1:
            step = unicodedata.decomposition(chr(c)).split()
            assert len(step) == 2 and nfd(chr(int(step[0], 16)) + chr(int(step[1], 16))) == full, hex(c)
            table[c] = (0, int(step[0], 16), int(step[1], 16))
            continue
        composes = nfc(full) == chr(c)
        assert composes == (nfc(head + full[-1]) == chr(c)), hex(c)
        table[c] = (int(composes), ord(head), ord(full[-1]))
    return table


def lower():
    f = normalizers.Lowercase().normalize_str
    return {c: f(chr(c)) for c in POINTS if f(chr(c)) != chr(c)}


def compat(nfd):
    f = normalizers.NFKD().normalize_str
    return {c: f(chr(c)) for c in POINTS if f(chr(c)) != nfd(chr(c))}


def units():
    """A function that counts what Precompiled looks up in a text: each grapheme cluster of less than
    six bytes once, each character of the longer ones.

    Its table is a trie (darts-clone) of 255 keys, each one byte, all of which become "Y".
    """
    blob = [0] * 1024
    blob[0] = 256 << 10  # the root's children: byte c lies at 256 ^ c
    for c in range(1, 256):
        at = 256 ^ c
        blob[at] = (at ^ 512) << 10 | 1 << 8 | c  # they share the leaf at 512, whose value is 0
    blob[512] = 1 << 31
    table = struct.pack(f"<I{len(blob)}I", 4 * len(blob), *blob) + b"Y\0"
    f = normalizers.Precompiled(table).normalize_str
    return lambda text: len(f(text))


def clusters():
    """What each code point does in a grapheme cluster, told by how many units a text with it has."""
    n = units()
    assert n("a") == 1 and n("ab") == 2 and n("e\u0301") == 1 and n("a\u0301\u0301\u0301") == 4
    mark, zwj, sign, ka, virama = "\u0301", "\u200d", "\u00a9", "\u0915", "\u094d"
    table = {}
    for c in POINTS:
        ch, flags = chr(c), 0
        if n("a" + ch) == 1:
            flags |= JOINS
            if n(sign + ch + zwj + sign + mark) == 5:
                flags |= EXTENDS
            if n(ka + ch + ka + mark) == 4:
                flags |= LINKER
            if n(ka + ch + virama + ka + mark) == 5:
                flags |= CONJOINS
        else:
            if n(ch + mark + mark) == 2:
                flags |= CONTROL
            if n(ch + "a") == 1:
                flags |= PREPEND
            if n(ch + zwj + sign + mark) == 4:
                flags |= PICTURE
            if n(ch + virama + ka + mark) == 4:
                flags |= CONSONANT
        table[c] = flags
    return table


def listed(table, encode):
    entries, at = [], 0
    for c in sorted(table):
        entries.append(uvarint(c - at) + encode(table[c]))
        at = c
    return entries


def main(out):
    nfd, nfc = normalizers.NFD().normalize_str, normalizers.NFC().normalize_str
    parts = [
        runs(classes()),
        runs(bert()),
        listed(combining(nfd), lambda k: bytes([k])),
        listed(decompose(nfd, nfc), lambda d: bytes([d[0]]) + uvarint(d[1]) + uvarint(d[2])),
        listed(lower(), lambda s: bytes([len(s)]) + b"".join(uvarint(ord(c)) for c in s)),
        listed(compat(nfd), lambda s: bytes([len(s)]) + b"".join(uvarint(ord(c)) for c in s)),
        runs(clusters()),
    ]
    with open(out, "wb") as f:
        for entries in parts:
            f.write(uvarint(len(entries)) + b"".join(entries))
    print([len(p) for p in parts], file=sys.stderr)


main(sys.argv[1])
