"""Trains the category head: n-grams and the sentence embedding, mixed and calibrated."""

import random

import numpy as np
from sklearn.svm import LinearSVC

import dense
import features
import ngrams
from rows import CATEGORIES

BUCKETS = 1 << 17
EPOCHS = 12
# The nets that are averaged: hidden values, share of inputs and of hidden values left out, and how
# much of a view they see. The embedding alone knows more of Chinese, the whole view more of exams.
NETS = [(256, 0.1, 0.3, 512), (384, 0.2, 0.5, 1024), (384, 0.2, 0.5, 1024)]


def variants(row: dict, rng: random.Random):
    """A question as it may be asked, with the weight of each: as it is, with its options, in lower
    case, cut."""
    text = row["text"]
    yield text, 1.0
    if row["options"]:
        yield text + "\n" + "\n".join(row["options"]), 0.7
    if rng.random() < 0.3:
        yield text.lower(), 0.5
    sentences = text.split(". ")
    if len(text) > 200 and len(sentences) > 2 and rng.random() < 0.5:
        at = rng.randrange(1, len(sentences))
        yield ". ".join(sentences[at:] if rng.random() < 0.6 else sentences[:at]), 0.5


class Head:
    """svm: (weights, bias, idf); net: layers of dense.average; mix: weight of the n-grams and
    factor of the whole, set by calibrate."""

    def __init__(self, rows: list[dict], cache: str, seed: int):
        rng = random.Random(seed)
        texts, labels, weights = [], [], []
        for row in rows:
            own = 3.0 if row["source"].startswith("written/") else 1.0
            for text, weight in variants(row, rng):
                texts.append(text)
                labels.append(CATEGORIES.index(row["label"]))
                weights.append(own * weight)
        labels, weights = np.array(labels), np.array(weights, np.float32)
        f = features.read(texts, cache, "category-train")
        x = ngrams.fold(f.text, BUCKETS)
        idf = ngrams.rarity(x)
        svm = LinearSVC(C=1, random_state=seed).fit(ngrams.weigh(x, idf), labels, sample_weight=weights)
        self.svm = svm.coef_, svm.intercept_, idf
        self.net = dense.average([self.train(f.whole(), labels, weights, seed + i, *how) for i, how in enumerate(NETS)])
        self.mix = 1.5, 1.0

    @staticmethod
    def train(x, labels, weights, seed, hidden, drop_in, drop, width):
        rng = np.random.default_rng(seed)
        batches = len(x) // 256
        x = x.copy()
        x[:, width:] = 0
        net = dense.Net(rng, hidden, len(CATEGORIES), drop_in, drop, rate=2e-3, decay=0.02, steps=EPOCHS * batches)
        goal = np.full((len(CATEGORIES), len(CATEGORIES)), 0.05 / len(CATEGORIES), np.float32)
        goal[np.diag_indices(len(CATEGORIES))] += 0.95
        for _ in range(EPOCHS):
            for b in np.array_split(rng.permutation(len(x)), batches):
                p = dense.softmax(net.forward(x[b] * dense.SCALE))
                net.backward((p - goal[labels[b]]) * (weights[b] / weights[b].sum())[:, None])
        net.values[0][:, width:] = 0
        return net

    def logits(self, f: features.Features) -> tuple[np.ndarray, np.ndarray]:
        """Of the net and of the n-grams, [n, 14] each."""
        w, b, idf = self.svm
        return dense.apply(self.net, f.whole()), ngrams.weigh(ngrams.fold(f.text, BUCKETS), idf) @ w.T + b

    def probabilities(self, f: features.Features) -> np.ndarray:
        net, svm = self.logits(f)
        return dense.softmax((net + self.mix[0] * svm) * self.mix[1])

    def calibrate(self, rows: list[dict], f: features.Features):
        """Sets the factor under which the probabilities of rows are most likely; every source counts
        the same, so that large sets do not set it alone."""
        net, svm = self.logits(f)
        labels = np.array([CATEGORIES.index(r["label"]) for r in rows])
        sources = np.array([r["source"] for r in rows])
        count = {s: (sources == s).sum() for s in set(sources)}
        weights = np.array([1 / max(count[s], 30) for s in sources])
        def loss(factor):
            p = dense.softmax((net + self.mix[0] * svm) * factor)[np.arange(len(rows)), labels]
            return -(weights * np.log(p + 1e-9)).sum()
        self.mix = self.mix[0], float(min(np.arange(0.3, 2.5, 0.02), key=loss))

    def tensors(self) -> dict[str, np.ndarray]:
        w, b, idf = self.svm
        return dense.tensors("category", self.net) | ngrams.tensors("category.ngram", w, b, idf) | {
            "category.mix": np.array(self.mix, np.float32)}

