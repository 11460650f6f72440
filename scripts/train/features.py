"""What the serving code sees in texts, taken from its Go code (features/main.go), cached by text."""

import dataclasses
import functools
import hashlib
import json
import os
import subprocess

import numpy as np
import scipy.sparse

DIM = 1024
BUCKETS = 1 << 18
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@dataclasses.dataclass
class Features:
    """Of n texts. Windows and chunks of text i are rows [p[i], p[i+1]) of theirs."""
    window: np.ndarray          # [windows, DIM] float16: embedding, and what it is made of; a text's first is its gist
    window_at: np.ndarray       # [n+1]
    span: np.ndarray            # [windows, 2] first and last span
    chunk: scipy.sparse.csr_matrix  # [chunks, BUCKETS] ones
    chunk_at: np.ndarray        # [n+1]
    text: scipy.sparse.csr_matrix   # [n, BUCKETS] ones
    script: np.ndarray          # [n] 0: letters, 1: ideographs, 2: letters that the encoder does not read

    def gist(self) -> np.ndarray:
        return self.window[self.window_at[:-1]].astype(np.float32)


@functools.cache
def build(cache: str) -> str:
    """The dumping program, built once a run. The commit is left out of it: it would end the cache."""
    program = os.path.join(cache, "features")
    subprocess.run(["go", "build", "-buildvcs=false", "-o", program, "./scripts/train/features"], cwd=ROOT, check=True)
    return program


def read(texts: list[str], cache: str, name: str) -> Features:
    """The features of texts; kept in cache under name, and valid as long as texts and code are the same."""
    program = build(cache)
    h = hashlib.sha256(open(program, "rb").read())
    for t in texts:
        h.update(t.encode("utf-8", "replace") + b"\0")
    path = os.path.join(cache, f"{name}-{h.hexdigest()[:16]}.npz")
    if not os.path.exists(path):
        for old in os.listdir(cache):
            if old.startswith(name + "-") and old.endswith(".npz"):
                os.remove(os.path.join(cache, old))
        save(path, program, texts)
    z = np.load(path)
    def csr(kind):
        at = z[kind + "_at"]
        return scipy.sparse.csr_matrix((np.ones(at[-1], np.float32), z[kind], at), shape=(len(at) - 1, BUCKETS))
    return Features(z["window"], z["window_n"], z["span"], csr("chunk"), z["chunk_n"], csr("text"), z["script"])


def join(parts: list[Features]) -> Features:
    """The features of the texts of all parts, in their order."""
    def at(name):
        counts = [np.diff(getattr(f, name)) for f in parts]
        return np.r_[0, np.cumsum(np.concatenate(counts))]
    def rows(name):
        return np.concatenate([getattr(f, name) for f in parts])
    def lists(name):
        return scipy.sparse.vstack([getattr(f, name) for f in parts], format="csr")
    return Features(rows("window"), at("window_at"), rows("span"), lists("chunk"), at("chunk_at"), lists("text"), rows("script"))


def save(path: str, program: str, texts: list[str]):
    rows = "".join(json.dumps({"text": t}) + "\n" for t in texts).encode()
    source = path + ".in"
    with open(source, "wb") as f:
        f.write(rows)
    window, span, window_n, script = [], [], [0], []
    lists, list_at, chunk_n, text, text_at = [], [0], [0], [], [0]
    with open(source, "rb") as f:
        run = subprocess.Popen([program], stdin=f, stdout=subprocess.PIPE)
        out = run.stdout
        def number():
            return int.from_bytes(out.read(4), "little")
        for _ in texts:
            script.append(number())
            n = number()
            raw = np.frombuffer(out.read(n * (8 + 4 * DIM)), np.uint8).reshape(n, 8 + 4 * DIM)
            span.append(raw[:, :8].copy().view(np.int32))
            window.append(raw[:, 8:].copy().view(np.float32).astype(np.float16))
            window_n.append(window_n[-1] + n)
            chunks = number()
            for k in range(chunks + 1):
                n = number()
                list_ = np.frombuffer(out.read(4 * n), np.uint32).astype(np.int32)
                (lists if k < chunks else text).append(list_)
                at = list_at if k < chunks else text_at
                at.append(at[-1] + n)
            chunk_n.append(chunk_n[-1] + chunks)
        if run.wait() != 0:
            raise RuntimeError("cannot dump features")
    os.remove(source)
    np.savez(path, window=np.concatenate(window), span=np.concatenate(span), window_n=np.array(window_n), chunk=np.concatenate(lists),
             chunk_at=np.array(list_at), chunk_n=np.array(chunk_n), text=np.concatenate(text), text_at=np.array(text_at), script=np.array(script))
