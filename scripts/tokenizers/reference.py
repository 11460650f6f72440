"""Tokenises with the reference library: the other side of tokenize's comparison.

    reference.py tokenizer.json          answers on standard output what stands on standard input:
        for each text  u32 bytes, u8 add_special_tokens, the bytes
        its tokens     u32 count, u32 each; all little-endian. Texts are answered a batch at a time,
        a batch ends with a text of 0xffffffff bytes, which is none.
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
        specials = read(1) != b"\0"
        texts.append((read(size).decode("utf-8", "replace"), specials))


def serve(t):
    read, out = sys.stdin.buffer.read, sys.stdout.buffer
    while (texts := batch(read)) is not None:
        ids = [None] * len(texts)
        for specials in (False, True):
            at = [i for i, (_, s) in enumerate(texts) if s == specials]
            for i, e in zip(at, t.encode_batch_fast([texts[i][0] for i in at], add_special_tokens=specials)):
                ids[i] = e.ids
        for i in ids:
            out.write(struct.pack(f"<{len(i) + 1}I", len(i), *i))
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
