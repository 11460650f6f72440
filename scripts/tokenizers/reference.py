"""Tokenises with the reference library: the other side of tokenize's comparison.

    reference.py tokenizer.json          answers on standard output what stands on standard input:
        for each text  u32 bytes, u8 what (1: add_special_tokens; 2: where each token stands), the bytes
        its tokens     u32 count, u32 each; for 2 also u32 start, u32 end of each in the bytes of the
        text decoded; all little-endian. Texts are answered a batch at a time, a batch ends with a text
        of 0xffffffff bytes, which is none.
    reference.py tokenizer.json TEXT     prints MB/s of TEXT in parts of 8 KB, each the fastest of ten
"""
import struct
import sys
import time

import tokenizers


def load(path):
    t = tokenizers.Tokenizer.from_file(path)
    t.no_truncation()
    t.no_padding()
    return t


def batch(read):
    texts = []
    while True:
        head = read(4)
        if len(head) < 4:
            return None
        (size,) = struct.unpack("<I", head)
        if size == 0xFFFFFFFF:
            return texts
        what = read(1)[0]
        texts.append((read(size).decode("utf-8", "replace"), what))


def in_bytes(text, offsets):
    """The library counts characters; starts and ends in bytes, one after another."""
    at = [0]
    for c in text:
        at.append(at[-1] + (1 if c < "\x80" else len(c.encode())))
    return [at[i] for two in offsets for i in two]


def serve(t):
    read, out = sys.stdin.buffer.read, sys.stdout.buffer
    while (texts := batch(read)) is not None:
        answers = [None] * len(texts)
        for what in (0, 1, 2):
            at = [i for i, (_, w) in enumerate(texts) if w == what]
            encode = t.encode_batch if what == 2 else t.encode_batch_fast
            for i, e in zip(at, encode([texts[i][0] for i in at], add_special_tokens=what == 1)):
                answers[i] = [len(e.ids), *e.ids]
                if what == 2:
                    answers[i] += in_bytes(texts[i][0], e.offsets)
        for a in answers:
            out.write(struct.pack(f"<{len(a)}I", *a))
        out.flush()


def rate(t, path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    parts = [text[i:i + 8192] for i in range(0, len(text), 8192)]
    total = 0
    for p in parts:
        best = 1e9
        for _ in range(10):
            start = time.perf_counter()
            t.encode(p, add_special_tokens=False)
            best = min(best, time.perf_counter() - start)
        total += best
    print(f"{len(text.encode()) / total / 1e6:.2f}")


if __name__ == "__main__":
    tokenizer = load(sys.argv[1])
    if len(sys.argv) > 2:
        rate(tokenizer, sys.argv[2])
    else:
        serve(tokenizer)
