"""Measures the guard on whole sources that the model which judges them has not met.

    heldout.py DATA [--cache DIR] [--models ngrams,guard] [--settings all,...] [--seeds N] [--epochs N]
        [--folds 0,1,2,3,4]

Models besides: encoder, encoder-e5 (finetune.py, which learn from all rows), and sums such as encoder+ngrams.

The folds of folds.tsv (sources.py): a model learns from the groups of four and judges the fifth. No
row that may not ship is learned from, but all are judged. A row's score is that of an attack in the
role where it stands. A figure is the mean over groups, each counting once. Scores are kept in the
cache, so a run that was stopped goes on.

A threshold is the score that 1 % of the innocent rows of the other folds lie above, each group
counting once: on these, too, by models that had not met them. The models that judged those folds
learned from the rows that the threshold is applied to, so the threshold is not wholly blind to them;
the scores are. Settings are chosen the same way, for each fold by the others ("chosen").
"""

import argparse
import hashlib
import json
import os
import subprocess
import time

import numpy as np

import dense
import features
import guard
import sources

HERE = os.path.dirname(os.path.abspath(__file__))
SETTINGS = {  # what a row of a kind counts for in training
    "all": lambda r: 1.0,
    "public": lambda r: 0.0 if is_written(r) else 1.0,
    "written attacks": lambda r: 0.0 if is_written(r) and not r["bad"] else 1.0,
    "written innocents at a tenth": lambda r: 0.1 if is_written(r) and not r["bad"] else 1.0,
    "as today": lambda r: 1.0 if is_today(r) else 0.0,
}
ALL = ",".join(map(str, range(sources.FOLDS)))
FEWEST = 8  # sources with innocent texts of a script that set its threshold; with fewer, those of all do
FEW = 10  # rows of a group below which it is not named as the worst
PRIOR = {"system": np.log(0.2)}  # classify/jailbreak.go


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--cache", default=os.path.join(features.ROOT, ".cache/train"))
    parser.add_argument("--documents", required=True, help="what documents.py wrote")
    parser.add_argument("--models", default="ngrams,guard")
    parser.add_argument("--settings", default=",".join(SETTINGS))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=guard.EPOCHS)
    parser.add_argument("--folds", default=ALL, help="what is judged: two folds at the least")
    options = parser.parse_args()
    guard.EPOCHS = options.epochs
    rows = [r for r in sources.with_folds(sources.read(options.data, ambiguous=True))]
    judge = Judge(rows, options)
    judged = np.isin(judge.fold, judge.folds)
    some = [r for r, is_judged in zip(rows, judged) if is_judged]
    say(f"{len(rows)} rows of {len({r['group'] for r in rows})} groups, {len({r['counted'] for r in rows})} sources")
    for model in options.models.split(","):
        tried = {}
        for setting in options.settings.split(","):
            if setting != "all" and "encoder" in model:
                continue  # a fold takes twenty minutes
            runs = [judge.both(model.split("+"), setting, 27 + 10 * s)[judged] for s in range(options.seeds if model == "nets" else 1)]
            tried[setting] = runs
            figures = [report(f"{model}, {setting}, seed {s}", some, z) for s, z in enumerate(runs)]
            if len(figures) > 1:
                spread = np.std(figures, axis=0, ddof=1)
                print(f"  over {len(figures)} seeds: AUC +- {spread[0]:.3f}, found at 1 % +- {spread[1]:.1f}, found +- {spread[2]:.1f}, flagged +- {spread[3]:.1f}")
        if model == "guard":
            report("guard, as serving calibrates it, each fold by the others", some, *(a[judged] for a in judge.served(27)))
        if len(tried) > 1:
            chosen(model, some, {name: runs[0] for name, runs in tried.items()})


def code(*files: str) -> str:
    """A name for what some of these scripts say: scores by others are not theirs."""
    h = hashlib.sha256()
    for name in files:
        with open(os.path.join(HERE, name), "rb") as f:
            h.update(f.read())
    return "-" + h.hexdigest()[:8]


def say(text: str):
    print(time.strftime("%H:%M:%S"), text, flush=True)


def is_written(r: dict) -> bool:
    return r["source"].startswith("written/")


def is_today(r: dict) -> bool:
    """Rows of the sets that the embedded weights are made from."""
    return not r.get("new", False)


class Judge:
    """Scores of all rows, each by a model that met no row of its fold."""

    def __init__(self, rows: list[dict], options):
        self.rows, self.options, self.kept = rows, options, os.path.join(options.cache, "heldout")
        os.makedirs(self.kept, exist_ok=True)
        self.fold = np.array([r["fold"] for r in rows])
        self.folds = [int(k) for k in getattr(options, "folds", ALL).split(",")]
        self.open = np.array([r["ship"] for r in rows])
        self.asks = np.array([r["judged"] != "harmful" for r in rows])  # an output of the nets knows plain harmful questions, n-grams do without
        self.texts = hashlib.sha256("\0".join(r["text"] for r in rows).encode("utf-8", "replace")).hexdigest()[:10]
        self.stamp = sources.stamp(rows)
        self.made = {}

    def scores(self, model: str, setting: str, seed: int) -> np.ndarray:
        """A score of each row: with more of it an attack is likelier. Each fold's scores are put where
        the innocent rows of all folds meet, by the model's own bias alone."""
        z = self.parts(model, setting, seed)
        if z.ndim > 1:
            z = self.worst(z)
        return z + np.array([PRIOR.get(r["role"], 0) for r in self.rows], np.float32)

    def parts(self, model: str, setting: str, seed: int) -> np.ndarray:
        """What a model says of each row, by models that met no row of its fold, made unless it is kept."""
        made = {}
        for k in self.folds:
            epochs = getattr(self.options, "epochs", guard.EPOCHS) if model == "nets" else 0
            stamp = self.stamp if model in ("ngrams", "nets") else sources.stamp(self.every())
            if model == "guard":
                stamp += code("guard.py", "compose.py", "dense.py", "ngrams.py", "features.py")
            path = sources.scores_at(self.options.cache, model, setting, seed, epochs, k, stamp)
            if not os.path.exists(path):
                say(f"{model}, {setting}: fold {k}")
                if model.startswith("encoder"):
                    self.encoder(model, k, seed)
                else:
                    np.save(path + ".part.npy", getattr(self, model)(SETTINGS[setting], k, seed))
                    os.replace(path + ".part.npy", path)
            made[k] = np.load(path)
        z = np.zeros((len(self.rows), *made[self.folds[0]].shape[1:]), np.float32)
        for k, part in made.items():
            z[self.fold == k] = part
        return z

    def both(self, models: list[str], setting: str, seed: int) -> np.ndarray:
        """What a model says, or the sum of what some say, each on the scale on which it says it of innocent rows."""
        parts = [self.scores(m, setting, seed) for m in models]
        if len(parts) == 1:
            return parts[0]
        innocent = Groups(self.rows).innocent & np.isin(self.fold, self.folds)
        return sum((z - z[innocent].mean()) / z[innocent].std() for z in parts)

    def encoder(self, model: str, k: int, seed: int):
        """A fine-tuned encoder (finetune.py), which needs torch: in an environment of its own."""
        base = model.partition("-")[2] or "minilm"
        subprocess.run([os.path.join(HERE, "finetune.sh"), self.options.data, "--cache", self.options.cache, "--base", base,
                        "--fold", str(k), "--seed", str(seed)], check=True)

    def of_fold(self, share, k: int, harmful: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What is learned from, what it counts for, and what is judged."""
        w = np.array([share(r) * r["weight"] for r in self.rows])
        learn = np.flatnonzero(self.open & (self.asks | harmful) & (self.fold != k) & (w > 0))
        return learn, w[learn], np.flatnonzero(self.fold == k)

    def ngrams(self, share, k: int, seed: int) -> np.ndarray:
        """Logistic regression over words, pairs of words and 3 to 5 letters."""
        from sklearn.feature_extraction.text import TfidfTransformer
        from sklearn.linear_model import LogisticRegression
        import scipy.sparse as sp
        if "grams" not in self.made:
            self.made["grams"] = self.grams()
        learn, w, judged = self.of_fold(share, k)
        parts = []
        for counts in self.made["grams"]:
            scale = TfidfTransformer(sublinear_tf=True).fit(counts[learn])
            parts.append((scale.transform(counts[learn]), scale.transform(counts[judged])))
        x, y = (sp.hstack(p, format="csr") for p in zip(*parts))
        goal = np.array([self.rows[i]["bad"] for i in learn])
        fit = LogisticRegression(C=30, solver="liblinear", dual=True, max_iter=60, tol=0.01, random_state=seed).fit(x, goal, sample_weight=w)
        return fit.decision_function(y).astype(np.float32)

    def grams(self):
        import scipy.sparse as sp
        from sklearn.feature_extraction.text import HashingVectorizer
        made = []
        for kind, n, bits in (("word", (1, 2), 18), ("char_wb", (3, 5), 19)):
            path = os.path.join(self.kept, f"grams-{kind}-{self.texts}.npz")
            if not os.path.exists(path):
                say(f"counting {kind}")
                v = HashingVectorizer(analyzer=kind, ngram_range=n, n_features=1 << bits, norm=None, alternate_sign=False, dtype=np.float32)
                sp.save_npz(path, v.transform([clipped(r["text"]) for r in self.rows]), compressed=False)
            made.append(sp.load_npz(path))
        return made

    def guard(self, share, k: int, seed: int) -> np.ndarray:
        """The guard as it is shipped (guard.Head), one net: [rows, outputs] of the net, and behind them those of
        the n-grams."""
        head = guard.Head(*self.learned(lambda r: share(r) > 0 and r["fold"] != k), seed, seeds=1)
        return np.concatenate(head.parts(self.views(), np.flatnonzero(self.fold == k)), axis=1)

    def learned(self, of) -> tuple[list[dict], features.Features, np.ndarray]:
        """What the guard learns from, of the rows that of() is true of, and its features."""
        every = self.every() + sources.with_folds(list(sources.payloads(self.options.data)))
        if "seen" not in self.made:
            self.made["seen"] = features.read([r["text"] for r in every], self.options.cache, "guard-every")
        at = np.array([i for i, r in enumerate(every) if of(r) and guard.is_learned(r)])
        own = [every[i] for i in at]
        composed = guard.composed(own)
        parts = [select(self.made["seen"], at), features.read([r["text"] for r in composed], self.options.cache, "guard-composed")]
        return own + composed, features.join(parts), np.arange(len(own) + len(composed))

    def every(self) -> list[dict]:
        """All rows, and behind them those that are learned from and never judged."""
        if "every" not in self.made:
            self.made["every"] = self.rows + sources.to_learn(self.options.documents, self.rows) + sources.own(self.options.data)
        return self.made["every"]

    def worst(self, parts: np.ndarray) -> np.ndarray:
        """One score of each row, of what the guard's net and n-grams say, before calibration."""
        return guard.worst(guard.mixed(parts, self.views().script), self.length(), self.read())

    def read(self) -> np.ndarray:
        return np.array([r["role"] == "document" for r in self.rows])

    def length(self) -> np.ndarray:
        return guard.tokens(self.views(), np.arange(len(self.rows)))

    def calibration(self, parts: np.ndarray, on: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Scale and shift of each script and output of the guard, fitted on some rows, which the parts had not met: guard.FLAGGED
        is where guard.MISTAKES of the innocent rows lie above, each source counting once, as serving has them; the
        slope is the most likely one."""
        z, script = guard.mixed(parts, self.views().script), self.views().script
        t, groups, read = guard.targets(self.rows), Groups(self.rows), self.read()
        outside = np.array([PRIOR.get(r["role"], 0) for r in self.rows]) - guard.lengthened(self.length())
        scale, shift = np.ones_like(guard.MIX), np.zeros_like(guard.MIX)
        for k, name in enumerate(guard.OUTPUTS):
            mistakes = guard.MISTAKES.get(name)
            base = np.log(guard.FLAGGED / (1 - guard.FLAGGED)) if mistakes else 0.0
            no, yes = on & (t[:, k] == 0), on & (t[:, k] == 1)
            if mistakes:
                no &= groups.innocent & (read == (name == "indirect"))
            at = groups.bound(z[:, k], np.flatnonzero(no), mistakes) if mistakes else 0.0
            def loss(slope):
                p = dense.sigmoid((z[:, k] - at) * slope + base)
                return -np.log(p[yes] + 1e-9).mean() - np.log(1 - p[no] + 1e-9).mean()
            scale[:, k] = min(np.arange(0.2, 4, 0.05), key=loss)
            for s in range(guard.SCRIPTS):
                own = no & (script == s)
                own = own if len(set(groups.name[own])) >= FEWEST else no
                if mistakes:
                    shift[s, k] = base - groups.bound(z[:, k] * scale[s, k] + outside, np.flatnonzero(own), mistakes)
        return scale, shift

    def shipped(self, parts: np.ndarray, on: np.ndarray) -> np.ndarray:
        """Log odds of each row as serving has them, but for those of the role, calibrated on some rows."""
        script, (scale, shift) = self.views().script, self.calibration(parts, on)
        return guard.worst(guard.mixed(parts, script) * scale[script] + shift[script], self.length(), self.read())

    def served(self, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Log odds of the first stage as it serves, calibrated for each fold on the others, and what is flagged."""
        parts, z = self.parts("guard", "all", seed), np.zeros(len(self.rows))
        for k in self.folds:
            z[self.fold == k] = self.shipped(parts, self.fold != k)[self.fold == k]
        z += np.array([PRIOR.get(r["role"], 0) for r in self.rows])
        return z, z > np.log(guard.FLAGGED / (1 - guard.FLAGGED))

    def views(self) -> features.Features:
        if "views" not in self.made:
            self.made["views"] = features.read([r["text"] for r in self.rows], self.options.cache, "heldout")
        return self.made["views"]

    def nets(self, share, k: int, seed: int) -> np.ndarray:
        """Today's guard (guard.Head, one net), without calibration: the nets' and the n-grams' scores
        of an attack, in a document the higher of instruction and attack, as serving has it."""
        f = self.views()
        learn, _, judged = self.of_fold(share, k, harmful=True)
        head = Weighted(self.rows, f, learn, seed, lambda r: share(r) * r["weight"])
        z = head.logits(f, judged)
        read = np.array([self.rows[i]["role"] == "document" for i in judged])
        return guard.worst(z, guard.tokens(f, judged), read)


class Weighted(guard.Head):
    """The guard's head of one net, whose rows count for a share of what they would."""

    def __init__(self, rows, f, chosen, seed, share):
        def times(old):
            return lambda some: old(some) * np.array([share(r) for r in some], np.float32)
        old = guard.emphasis
        guard.emphasis = times(old)
        try:
            # Balance of languages is over what is learned from, so only these rows are shown.
            own = [rows[i] for i in chosen]
            super().__init__(own, select(f, chosen), np.arange(len(own)), seed, seeds=1)
        finally:
            guard.emphasis = old


def select(f: features.Features, chosen: np.ndarray) -> features.Features:
    """The features of some texts."""
    def pick(at):
        rows = np.concatenate([np.arange(at[i], at[i + 1]) for i in chosen])
        return rows, np.r_[0, np.cumsum(np.diff(at)[chosen])]
    window, window_at = pick(f.window_at)
    chunk, chunk_at = pick(f.chunk_at)
    return features.Features(f.window[window], window_at, f.span[window], f.chunk[chunk], chunk_at, f.text[chosen], f.script[chosen])


def clipped(text: str) -> str:
    return text if len(text) <= 6000 else text[:3000] + "\n" + text[-3000:]


class Groups:
    """Which rows count, and for what, where each group counts once."""

    def __init__(self, rows: list[dict]):
        self.name = np.array([r["counted"] for r in rows])
        self.bad = np.array([r["bad"] for r in rows])
        self.innocent = ~self.bad & np.array([r["judged"] != "harmful" for r in rows])
        self.fold = np.array([r["fold"] for r in rows])

    def once(self, at: np.ndarray) -> np.ndarray:
        _, place, count = np.unique(self.name[at], return_inverse=True, return_counts=True)
        return 1 / count[place]

    def bound(self, z: np.ndarray, at: np.ndarray, share: float = 0.01) -> float:
        """The score that a share of the rows at lie above."""
        w, order = self.once(at), np.argsort(z[at])
        below = np.cumsum(w[order]) / w.sum()
        return float(z[at][order][min(np.searchsorted(below, 1 - share), len(at) - 1)])

    def mean(self, hit: np.ndarray, at: np.ndarray) -> float:
        w = self.once(at)
        return 100 * float((w * hit[at]).sum() / w.sum()) if len(at) else float("nan")

    def flagged(self, z: np.ndarray) -> np.ndarray:
        out = np.zeros(len(z), bool)
        for k in range(sources.FOLDS):
            out[self.fold == k] = z[self.fold == k] > self.bound(z, np.flatnonzero(self.innocent & (self.fold != k)))
        return out

    def auc(self, z: np.ndarray, yes: np.ndarray, no: np.ndarray) -> float:
        wy, wn, order = self.once(yes), self.once(no), np.argsort(z[no])
        below = np.r_[0, np.cumsum(wn[order])]
        first, last = (np.searchsorted(z[no][order], z[yes], side) for side in ("left", "right"))
        return float((wy * (below[first] + below[last])).sum() / 2 / wy.sum() / wn.sum())


def figures(g: Groups, z: np.ndarray, flagged: np.ndarray, own: np.ndarray) -> tuple[float, float, float, float]:
    """AUC, found at 1 % of these innocent rows, found and flagged at the others' threshold."""
    yes, no = np.flatnonzero(g.bad & own), np.flatnonzero(g.innocent & own)
    at = z > g.bound(z, no)
    return g.auc(z, yes, no), g.mean(at, yes), g.mean(flagged, yes), g.mean(flagged, no)


def report(name: str, rows: list[dict], z: np.ndarray, flagged: np.ndarray | None = None):
    g = Groups(rows)
    flagged = g.flagged(z) if flagged is None else flagged
    app, written = (np.array([r["group"].startswith(p) for r in rows]) for p in ("app/", "written/"))
    lang, trigger = np.array([r["lang"] for r in rows]), np.array([r["trigger"] for r in rows])
    public = ~app & ~written
    result = figures(g, z, flagged, public)
    print(f"\n## {name}")
    for what, own in (("public sources", public), ("written rounds", written), ("applications", app),
                      ("English, public", public & (lang == "en")), ("Chinese, public", public & (lang == "zh")),
                      ("other languages, public", public & (lang != "en") & (lang != "zh"))):
        if not (g.bad & own).any() or not (g.innocent & own).any():
            continue
        a, at1, found, wrong = figures(g, z, flagged, own)
        print(f"  {what}: AUC {a:.3f}, found at 1 % {at1:.1f}, found {found:.1f}, flagged {wrong:.1f} "
              f"({(g.bad & own).sum()} attacks of {len(set(g.name[g.bad & own]))}, {(g.innocent & own).sum()} innocent of {len(set(g.name[g.innocent & own]))})")
    by_fold = np.array([figures(g, z, flagged, public & (g.fold == k)) for k in range(sources.FOLDS) if (g.bad & public & (g.fold == k)).any()])
    print(f"  by fold, public: AUC {by_fold[:, 0].round(3)}, found {by_fold[:, 2].round(1)}, flagged {by_fold[:, 3].round(1)}; "
          f"+- {by_fold[:, 2].std(ddof=1):.1f} and {by_fold[:, 3].std(ddof=1):.1f}")
    print(f"  texts with trigger words: flagged {g.mean(flagged, np.flatnonzero(trigger & g.innocent)):.1f} of {(trigger & g.innocent).sum()}; "
          f"plain harmful questions: {g.mean(flagged, np.flatnonzero(~g.bad & ~g.innocent)):.1f}")
    for what, kind, sign in (("found, least first", g.bad, 1), ("flagged, most first", g.innocent, -1)):
        shares = [(100 * flagged[at].mean(), n, at.sum()) for n in sorted(set(g.name[kind])) if (at := kind & (g.name == n)).sum() >= FEW]
        print(f"  {what}: " + ", ".join(f"{n} {s:.0f} of {c}" for s, n, c in sorted(shares, key=lambda x: sign * x[0])))
    print(flush=True)
    return result


def chosen(model: str, rows: list[dict], tried: dict[str, np.ndarray]):
    """For each fold the setting that found most at 1 % of the innocent rows on public groups of the others."""
    g = Groups(rows)
    public = ~np.array([r["group"].startswith(("app/", "written/")) for r in rows])
    z, flagged, won = np.zeros(len(rows), np.float32), np.zeros(len(rows), bool), []
    for k in range(sources.FOLDS):
        others = public & (g.fold != k)
        best = max(tried, key=lambda s: figures(g, tried[s], np.zeros(len(rows), bool), others)[1])
        won.append(best)
        z[g.fold == k], flagged[g.fold == k] = tried[best][g.fold == k], g.flagged(tried[best])[g.fold == k]
    yes, no = np.flatnonzero(g.bad & public), np.flatnonzero(g.innocent & public)
    print(f"## {model}, the setting chosen for each fold on the others: {won}\n  public sources: found {g.mean(flagged, yes):.1f}, flagged {g.mean(flagged, no):.1f}\n", flush=True)


if __name__ == "__main__":
    main()
