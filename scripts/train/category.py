"""Trains the category head: two experts, one for exam text and one for everyday questions, and the gate that
says which of them a text is for.

Each expert mixes n-grams and the sentence embedding, and is calibrated. One head for both was worse at each (README.md):
the words of an exam question tell more, and other things, than those of somebody who asks.

The nets for exam text learn fields, such as organic chemistry or college law, which are narrower than the 14
labels; the probabilities of a label's fields are added up. Telling fields apart makes better views
of the hidden values than 14 wide labels do: of 100 exam questions 1.4 more are right. Chinese
questions have no field here, and any of their label's is right for them: of 100 Chinese exam questions
nobody trained on 2 more are right than where they have a field of their own, and of English ones
fewer if theirs are free too. Everyday questions have no fields but their labels, and one of the public sets.
"""

import collections
import dataclasses
import functools
import random

import numpy as np
from sklearn.svm import LinearSVC

import dense
import features
import ngrams
from rows import CATEGORIES

BUCKETS = 1 << 17  # of each expert
EPOCHS = 12
NET = (640, 0.2, 0.4)  # hidden values, share of inputs and of hidden values left out
NETS = {"exam": 3, "everyday": 1}  # of an expert, which are averaged
MAX_HIDDEN = 1920  # of all nets of an expert; heads.go has the same number
# The one net for everyday questions, which are most of what is asked, learns from what three like it say of its texts. It
# takes 1.8 us a question, of twelve judged together, where two take twice that; the exams' three take 5.8 (each of 704
# values). Two have 0.0 to 0.4 points more of everyday questions, a point more of searches (README.md).
TEACHERS = {"exam": 0, "everyday": 3}
TAUGHT = 0.7  # how much of its goal they are
GATE = (64, 0.2, 0.2)
GATE_EXAM = 1.5  # how much exam text counts to the gate, everyday questions being 1: exams lose more by a mistake
GATE_EPOCHS = 8
# How much a text counts: 1, or 3 if it was written for this project, where nothing else is said. Everyday questions and
# searches were weighed against the exams while one head learned both; now these numbers count within an expert. Written
# exam questions counted 1.8 (English) and 4 until question8-* doubled the English ones: as many at that weight
# cost MMLU-Pro half a point (README.md).
WEIGHTS = {"written/everyday": 0.85, "written/search": 0.4, "written/trivia": 1.5, "written/exam": 3.2, "written/exam en": 1.1,
           "mmlu": 2.2, "mmlu-pro": 2.2}
FIELD_TEXTS = 30  # a field of fewer texts counts to the label's rest
EXPERTS = ["exam", "everyday"]  # classify/model/category.go has the same order
# The n-grams of an expert learn from the other's texts, too, with this factor, so that a text that the gate mistakes
# is not lost: everyday n-grams have 72 instead of 57 of 100 exam questions so, and as many everyday ones.
OTHERS = 0.05
# The nets of an expert learn from a share of the other's texts, with a factor: each fifth everyday question makes the
# exams' net no worse, but exam questions do the everyday one's.
NET_OTHERS = {"exam": (0.2, 0.25), "everyday": (0.0, 0.0)}
SHARES = {"exam": 2.0, "everyday": 3.2}  # of the n-grams in the sum


def is_exam(row: dict) -> bool:
    return row["source"] in ("mmlu", "mmlu-pro", "gsm8k", "theoremqa", "written/exam") or row["source"].startswith("agieval")


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


@dataclasses.dataclass
class Texts:
    """What the head learns from: texts, variants of rows among them."""
    label: np.ndarray   # [n] index of CATEGORIES
    field: list         # [n] (label, field)
    free: np.ndarray    # [n] any field of the label is right
    weight: np.ndarray  # [n]
    exam: np.ndarray    # [n]
    features: features.Features

    @classmethod
    def of(cls, rows: list[dict], cache: str, seed: int):
        rng = random.Random(seed)
        texts, label, field, free, weight, exam = [], [], [], [], [], []
        for row in rows:
            own = WEIGHTS.get(row["source"], 3.0 if row["source"].startswith("written/") else 1.0)
            own = WEIGHTS.get(row["source"] + " " + row["lang"], own)
            for text, part in variants(row, rng):
                texts.append(text)
                label.append(CATEGORIES.index(row["label"]))
                field.append((row["label"], row.get("field", "")))
                free.append(row["lang"] == "zh")
                weight.append(own * part)
                exam.append(is_exam(row))
        return cls(np.array(label), field, np.array(free), np.array(weight, np.float32), np.array(exam), features.read(texts, cache, "category-train"))


class Expert:
    """svm: (weights, bias, idf); net: layers of dense.average, whose outputs are fields; label: of
    each field; mix: weight of the n-grams and factor of the whole, set by calibrate."""

    def __init__(self, name: str, t: Texts, grams, idf: np.ndarray, seed: int):
        if NETS[name] * NET[0] > MAX_HIDDEN:
            raise ValueError(f"{NETS[name]} nets of {NET[0]} values for {name} text are more than the {MAX_HIDDEN} that Kvasir takes")
        own = t.exam == (name == "exam")
        svm = LinearSVC(C=1, random_state=seed).fit(grams, t.label, sample_weight=t.weight * np.where(own, 1, OTHERS))
        self.svm = ngrams.cut(svm.coef_, idf), svm.intercept_, idf
        share, factor = NET_OTHERS[name]
        learn = np.flatnonzero(own | (np.random.default_rng(seed).random(len(own)) < share))
        weight = (t.weight * np.where(own, 1, factor))[learn].astype(np.float32)
        fields = [t.field[i] for i in learn]
        count = collections.Counter(fields)
        fields = [field if count[field] >= FIELD_TEXTS else (field[0], "") for field in fields]
        names = sorted(set(fields))
        self.label = np.array([CATEGORIES.index(label) for label, _ in names])
        free = t.free[learn] & np.array([not field for _, field in fields])
        fields = np.array([names.index(field) for field in fields])
        x = t.features.gist()[learn]
        train = functools.partial(self.train, x, fields, free, weight)
        teachers = [train(seed + NETS[name] + i) for i in range(TEACHERS[name])]
        self.net = dense.average([train(seed + i, teachers) for i in range(NETS[name])])
        self.mix = SHARES[name], 1.0

    def train(self, x, fields, free, weights, seed, teachers=()):
        """A net that tells fields apart; of the rows that are free, any field of the label is right. What teachers,
        nets too, say together is a part of the goal."""
        teacher = dense.average(teachers) if teachers else None
        rng = np.random.default_rng(seed)
        batches = len(x) // 256
        count = len(self.label)
        siblings = self.label[:, None] == self.label
        net = dense.Net(rng, NET[0], count, *NET[1:], rate=2e-3, decay=0.02, steps=EPOCHS * batches)
        for _ in range(EPOCHS):
            for b in np.array_split(rng.permutation(len(x)), batches):
                p = dense.softmax(net.forward(x[b] * dense.SCALE))
                goal = np.eye(count, dtype=np.float32)[fields[b]]
                likely = p[free[b]] * siblings[fields[b][free[b]]]
                goal[free[b]] = likely / np.maximum(likely.sum(1, keepdims=True), 1e-9)
                goal = goal * 0.95 + 0.05 / count
                if teacher:
                    goal += TAUGHT * (dense.softmax(dense.apply(teacher, x[b])) - goal)
                net.backward((p - goal) * (weights[b] / weights[b].sum())[:, None])
        return net

    def logits(self, f: features.Features) -> tuple[np.ndarray, np.ndarray]:
        """Of the net, logarithms of probabilities, and of the n-grams, [n, 14] each."""
        w, b, idf = self.svm
        belongs = np.eye(len(CATEGORIES), dtype=np.float32)[self.label]
        net = np.log(np.maximum(dense.softmax(dense.apply(self.net, f.gist())) @ belongs, 1e-9))
        return net, ngrams.weigh(ngrams.fold(f.text, BUCKETS), idf) @ w.T + b

    def probabilities(self, f: features.Features) -> np.ndarray:
        """[n, 14], as if all texts were for this expert."""
        net, svm = self.logits(f)
        return dense.softmax((net + self.mix[0] * svm) * self.mix[1])

    def calibrate(self, f: features.Features, labels: np.ndarray, weights: np.ndarray):
        """Sets the factor under which the probabilities of labels are most likely."""
        net, svm = self.logits(f)
        def loss(factor):
            p = dense.softmax((net + self.mix[0] * svm) * factor)[np.arange(len(labels)), labels]
            return -(weights * np.log(p + 1e-9)).sum()
        self.mix = self.mix[0], float(min(np.arange(0.3, 2.5, 0.02), key=loss))

    def tensors(self, name: str) -> dict[str, np.ndarray]:
        w, b, idf = self.svm
        return dense.tensors(name, self.net) | ngrams.tensors(name + ".ngram", w, b, idf) | {
            name + ".label": self.label.astype(np.uint8), name + ".mix": np.array(self.mix, np.float32)}


class Head:
    """experts, in the order of EXPERTS; gate: layers whose outputs say for which of them a text is."""

    def __init__(self, rows: list[dict], cache: str, seed: int):
        t = Texts.of(rows, cache, seed)
        x = ngrams.fold(t.features.text, BUCKETS)
        idf = ngrams.rarity(x)
        x = ngrams.weigh(x, idf)
        self.experts = [Expert(name, t, x, idf, seed) for name in EXPERTS]
        self.gate = self.train_gate(t, seed)

    def train_gate(self, t: Texts, seed: int):
        rng = np.random.default_rng(seed)
        x, batches = t.features.gist(), len(t.exam) // 256
        weight = t.weight * np.where(t.exam, GATE_EXAM / t.weight[t.exam].sum(), 1 / t.weight[~t.exam].sum())
        goal = np.eye(2, dtype=np.float32)[np.where(t.exam, EXPERTS.index("exam"), EXPERTS.index("everyday"))]
        net = dense.Net(rng, GATE[0], len(EXPERTS), *GATE[1:], rate=2e-3, decay=0.02, steps=GATE_EPOCHS * batches)
        for _ in range(GATE_EPOCHS):
            for b in np.array_split(rng.permutation(len(x)), batches):
                p = dense.softmax(net.forward(x[b] * dense.SCALE))
                net.backward((p - goal[b]) * (weight[b] / weight[b].sum())[:, None])
        return dense.average([net])

    def choice(self, f: features.Features) -> np.ndarray:
        """[n] which expert each text is for."""
        return dense.apply(self.gate, f.gist()).argmax(1)

    def probabilities(self, f: features.Features) -> np.ndarray:
        p = np.stack([expert.probabilities(f) for expert in self.experts])
        return p[self.choice(f), np.arange(p.shape[1])]

    def calibrate(self, rows: list[dict], f: features.Features):
        """Calibrates each expert on the rows that the gate gives it. Every source counts the same, so that large sets do
        not set it alone, for an expert by the share of its rows that it is given: the few that the gate mistakes count
        little."""
        labels = np.array([CATEGORIES.index(r["label"]) for r in rows])
        sources = np.array([r["source"] for r in rows])
        count = collections.Counter(sources)
        weights = np.array([1 / max(count[s], 30) for s in sources])
        choice = self.choice(f)
        for i, expert in enumerate(self.experts):
            if not (choice == i).any():
                raise ValueError(f"cannot calibrate: the gate gives none of {len(rows)} rows to the expert for {EXPERTS[i]} text")
            expert.calibrate(f, labels, weights * (choice == i))

    def tensors(self) -> dict[str, np.ndarray]:
        t = dense.tensors("category.gate", self.gate)
        for name, expert in zip(EXPERTS, self.experts):
            t |= expert.tensors("category." + name)
        return t
