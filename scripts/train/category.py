"""Trains the category head: n-grams and the sentence embedding, mixed and calibrated.

The nets learn fields, such as organic chemistry or college law, which are narrower than the 14
labels; the probabilities of a label's fields are added up. Telling fields apart makes better views
of the hidden values than 14 wide labels do: of 100 exam questions 1.4 more are right. Chinese
questions have no field here, and any of their label's is right for them: of 100 Chinese exam questions
nobody trained on 2 more are right than where they have a field of their own, and of English ones
fewer if theirs are free too.
"""

import collections
import random

import numpy as np
from sklearn.svm import LinearSVC

import dense
import features
import ngrams
from rows import CATEGORIES

BUCKETS = 1 << 18
EPOCHS = 12
# The nets that are averaged: hidden values, share of inputs and of hidden values left out.
NETS = [(768, 0.2, 0.4)] * 2
# How much a text counts: 1, or 3 if it was written for this project, where nothing else is said. Everyday
# questions and searches outnumber the exams by far: with 1.5 and 0.7 for them, 1.4 for the public exams and 1.5 for
# English exam questions that were written, MMLU lost 1.6 points when question6-* came (README.md). Everyday
# questions lose less by their weight than they gain by their number; with question7-* they have 0.85 and 0.4, and the
# public exams 2.2.
WEIGHTS = {"written/everyday": 0.85, "written/search": 0.4, "written/trivia": 1.5, "written/exam": 4.0, "written/exam en": 1.8,
           "mmlu": 2.2, "mmlu-pro": 2.2}
FIELD_TEXTS = 30  # a field of fewer texts counts to the label's rest


def variants(row: dict, rng: random.Random):
    """A question as it may be asked, with the weight of each: as it is, with its options, each turn of
    a conversation by itself, in lower case, cut."""
    text = row["text"]
    yield text, 1.0
    if len(row.get("asked", ())) > 1:
        yield row["asked"][0], 0.5
        yield row["asked"][-1], 0.2  # often nothing but "and shorter", which tells little
    if row["options"]:
        yield text + "\n" + "\n".join(row["options"]), 0.7
    if rng.random() < 0.3:
        yield text.lower(), 0.5
    sentences = text.split(". ")
    if len(text) > 200 and len(sentences) > 2 and rng.random() < 0.5:
        at = rng.randrange(1, len(sentences))
        yield ". ".join(sentences[at:] if rng.random() < 0.6 else sentences[:at]), 0.5


class Head:
    """svm: (weights, bias, idf); net: layers of dense.average, whose outputs are fields; label: of
    each field; mix: weight of the n-grams and factor of the whole, set by calibrate."""

    def __init__(self, rows: list[dict], cache: str, seed: int):
        rng = random.Random(seed)
        texts, labels, fields, weights, free = [], [], [], [], []
        for row in rows:
            own = WEIGHTS.get(row["source"], 3.0 if row["source"].startswith("written/") else 1.0)
            own = WEIGHTS.get(row["source"] + " " + row["lang"], own)
            for text, weight in variants(row, rng):
                texts.append(text)
                labels.append(CATEGORIES.index(row["label"]))
                fields.append((row["label"], row.get("field", "")))
                free.append(row["lang"] == "zh")
                weights.append(own * weight)
        labels, weights = np.array(labels), np.array(weights, np.float32)
        f = features.read(texts, cache, "category-train")
        x = ngrams.fold(f.text, BUCKETS)
        idf = ngrams.rarity(x)
        svm = LinearSVC(C=1, random_state=seed).fit(ngrams.weigh(x, idf), labels, sample_weight=weights)
        self.svm = svm.coef_, svm.intercept_, idf
        count = collections.Counter(fields)
        fields = [field if count[field] >= FIELD_TEXTS else (field[0], "") for field in fields]
        names = sorted(set(fields))
        self.label = np.array([CATEGORIES.index(label) for label, _ in names])
        free = np.array(free) & np.array([not field for _, field in fields])
        fields = np.array([names.index(field) for field in fields])
        self.net = dense.average([self.train(f.gist(), fields, free, weights, seed + i, *how) for i, how in enumerate(NETS)])
        self.mix = 2.4, 1.0

    def train(self, x, fields, free, weights, seed, hidden, drop_in, drop):
        """A net that tells fields apart; of the rows that are free, any field of the label is right."""
        rng = np.random.default_rng(seed)
        batches = len(x) // 256
        count = len(self.label)
        siblings = self.label[:, None] == self.label
        net = dense.Net(rng, hidden, count, drop_in, drop, rate=2e-3, decay=0.02, steps=EPOCHS * batches)
        for _ in range(EPOCHS):
            for b in np.array_split(rng.permutation(len(x)), batches):
                p = dense.softmax(net.forward(x[b] * dense.SCALE))
                goal = np.eye(count, dtype=np.float32)[fields[b]]
                likely = p[free[b]] * siblings[fields[b][free[b]]]
                goal[free[b]] = likely / np.maximum(likely.sum(1, keepdims=True), 1e-9)
                net.backward((p - goal * 0.95 - 0.05 / count) * (weights[b] / weights[b].sum())[:, None])
        return net

    def logits(self, f: features.Features) -> tuple[np.ndarray, np.ndarray]:
        """Of the net, logarithms of probabilities, and of the n-grams, [n, 14] each."""
        w, b, idf = self.svm
        belongs = np.eye(len(CATEGORIES), dtype=np.float32)[self.label]
        net = np.log(np.maximum(dense.softmax(dense.apply(self.net, f.gist())) @ belongs, 1e-9))
        return net, ngrams.weigh(ngrams.fold(f.text, BUCKETS), idf) @ w.T + b

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
            "category.label": self.label.astype(np.uint8), "category.mix": np.array(self.mix, np.float32)}

