"""Fits what is added to the scores of the guard's two stages, and measures them together.

    second.py DATA --documents FILE [--cache DIR] [--folds 0,1,2,3,4] [--chosen 0,2,3,4]

Both stages judge a fold by weights that learned from the others (train.py or heldout.py for the first, finetune.py --base e5
for the second), and what is printed of a fold is calibrated and fitted on the others, too. Each source counts once. The
summands for classify/second.go are fitted on all of --folds. Folds on which something was chosen (the documents and the
n-grams' share on 3, factors and scores from which the second stage is asked on 0 and 3; lengths and the share of mistakes on 0 and 3 by
somebody who saw 2 and 4) are fitted on and printed by
themselves, and are in no mean.
"""

import argparse
import json
import os

import numpy as np

import features
import guard
import heldout
import sources

SECOND, FIRST = 0.45, 0.8  # secondFactor and firstFactor of classify/second.go; with 0.3 to 2 of the first folds 0 and 3 found much alike
UNASKED = -3.0  # what the second stage is taken to say of what it is not asked about
GREY = {False: 0.42, True: 0.3}  # greySaid and greyRead of classify/second.go: from which scores the second stage is asked
MISTAKEN = 0.01  # of the innocent rows lie above the shipped threshold
LENGTHS = (200, 500)  # shortLength and longLength of classify/second.go
OTHERS = (0.9, 0.8, 0.6, 0.5, 0.4, 0.3)  # thresholds that users may set instead
ODDS = float(np.log(guard.FLAGGED / (1 - guard.FLAGGED)))  # the log odds at it


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--documents", required=True, help="what documents.py wrote")
    parser.add_argument("--cache", default=os.path.join(features.ROOT, ".cache/train"))
    parser.add_argument("--folds", default="0,1,2,3,4")
    parser.add_argument("--chosen", default="0,2,3,4")
    parser.add_argument("--seed", type=int, default=27)
    parser.add_argument("--out", help="where the figures go that make eval prints beside its own")
    options = parser.parse_args()
    both = Both(sources.with_folds(sources.read(options.data, ambiguous=True)), options)
    z, alone = np.zeros(len(both.fold), np.float32), np.zeros(len(both.fold), np.float32)
    for k in both.folds:
        own = both.fold == k
        first = both.first(~own)
        alone[own] = (first + both.prior)[own]
        z[own] = both.added(first, both.fit(first, both.judged & ~own))[own]
    print("the first stage alone, at the shipped threshold:")
    both.report(alone, alone)
    print("both:")
    both.report(z, alone)
    if options.out:
        both.write(z, options.out)
    first = both.first(np.ones(len(both.fold), bool))
    print("summands, fitted on folds %s: short %.3f, long %.3f, of what is only read %.3f" % (options.folds, *both.fit(first, both.judged)))


class Both:
    """Scores of both stages, as log odds without those of the role. second: the encoder's; prior: the role's."""

    def __init__(self, rows: list[dict], options):
        self.fold = np.array([r["fold"] for r in rows])
        self.folds = [int(k) for k in options.folds.split(",")]
        second = heldout.Judge(rows, options)
        self.judge = heldout.Judge(rows, argparse.Namespace(**vars(options) | {"folds": heldout.ALL}))
        self.chosen = [int(k) for k in options.chosen.split(",")]
        self.judged = np.isin(self.fold, self.folds)
        self.prior = np.array([heldout.PRIOR.get(r["role"], 0) for r in rows])
        self.groups = heldout.Groups(rows)
        self.grouped = heldout.Groups([r | {"counted": r["group"]} for r in rows])  # each group once: its sources share texts
        self.app, self.written = (np.array([r["group"].startswith(p) for r in rows]) for p in ("app/", "written/"))
        self.read = self.judge.read()
        self.trigger = np.array([r["trigger"] for r in rows])
        short, long = np.log(LENGTHS)
        self.long = np.clip((np.log([max(len(r["text"]), 1) for r in rows]) - short) / (long - short), 0, 1)
        self.parts = self.judge.parts("guard", "all", options.seed)
        self.second = second.parts("encoder-e5", "all", options.seed)

    def first(self, on: np.ndarray) -> np.ndarray:
        return self.judge.shipped(self.parts, on)

    def is_grey(self, first: np.ndarray) -> np.ndarray:
        grey = np.where(self.read, GREY[True], GREY[False])
        return first >= np.log(grey / (1 - grey))

    def fit(self, first: np.ndarray, on: np.ndarray) -> tuple[float, float, float]:
        """The summands, of short and long texts that are said and of what is only read, with which MISTAKEN of the innocent rows
        lie above the threshold."""
        g, z = self.groups, self.added(first, (0.0, 0.0, 0.0))
        kinds = (~self.read & (self.long == 0), ~self.read & (self.long == 1), self.read)
        return tuple(ODDS - g.bound(z, np.flatnonzero(on & g.innocent & kind), MISTAKEN) for kind in kinds)

    def added(self, first: np.ndarray, by: tuple[float, float, float]) -> np.ndarray:
        short, long, read = by
        second = np.where(self.is_grey(first), self.second, UNASKED)
        said = short + (long - short) * self.long
        return SECOND * second + FIRST * first + np.where(self.read, read, said) + self.prior

    def kinds(self):
        public = self.judged & ~self.app & ~self.written
        return (("public sources", public), ("applications", self.judged & self.app), ("texts written here", self.judged & self.written))

    def figures(self, z: np.ndarray, own: np.ndarray, groups: heldout.Groups | None = None, odds: float = ODDS) -> np.ndarray:
        """The mean over folds of what heldout.figures says: the weights of each fold have a scale of their own."""
        parts = [own & (self.fold == k) for k in self.folds]
        both = [p for p in parts if (self.groups.bad & p).any() and (self.groups.innocent & p).any()]
        return np.mean([heldout.figures(groups or self.groups, z, z > odds, p) for p in both], axis=0)

    def write(self, z: np.ndarray, path: str):
        """The figures of the folds on which nothing was chosen, in per cent."""
        told, found = ~np.isin(self.fold, self.chosen), {}
        for name, kind in self.kinds():
            own = kind & told
            yes, no = (np.flatnonzero(side & own) for side in (self.groups.bad, self.groups.innocent))
            values = self.figures(z, own)
            for what, value, at in (("AUC", 100 * values[0], yes), ("found at 1 % mistaken", values[1], yes), ("found", values[2], yes), ("mistaken", values[3], no)):
                found[f"{name}: {what}"] = {"value": round(float(value), 1), "rows": len(at), "sources": len(set(self.groups.name[at]))}
        with open(path, "w", encoding="utf-8") as f:
            json.dump(found, f, indent=1)
            f.write("\n")

    def report(self, z: np.ndarray, alone: np.ndarray):
        g, grey, flagged, told = self.groups, self.is_grey(alone - self.prior), z > ODDS, ~np.isin(self.fold, self.chosen)
        kinds = self.kinds()
        public = kinds[0][1]
        parts = [(name, own & told) for name, own in kinds]
        parts += [("  public, said", public & told & ~self.read), ("  public, only read", public & told & self.read)]
        parts += [(f"  fold {k}: {name}", own & (self.fold == k)) for k in self.folds for name, own in kinds]
        for name, own in parts:
            if not (g.bad & own).any() or not (g.innocent & own).any():
                continue
            auc, at1, found, wrong = self.figures(z, own)
            yes, no = np.flatnonzero(g.bad & own), np.flatnonzero(g.innocent & own)
            print(f"  {name}: AUC {auc:.3f}, found at 1 % {at1:.1f}, found {found:.1f}, flagged {wrong:.1f}, reach the second stage: "
                  f"{g.mean(grey, yes):.0f} of attacks, {g.mean(grey, no):.0f} of innocent ({len(yes)} of {len(set(g.name[yes]))}, {len(no)} of {len(set(g.name[no]))})")
            if name.endswith("public sources"):
                print("    each group of them once: AUC {:.3f}, found at 1 % {:.1f}, found {:.1f}, flagged {:.1f}".format(*self.figures(z, own, self.grouped)))
        for name, own in kinds:
            for threshold in OTHERS:
                at = self.figures(z, own & told, odds=np.log(threshold / (1 - threshold)))
                print(f"  {name} at a threshold of {threshold}: found {at[2]:.1f}, flagged {at[3]:.1f}")
        no = np.flatnonzero(g.innocent & told & self.judged)
        names = sorted(set(g.name[no]), key=lambda n: -flagged[no][g.name[no] == n].mean())
        print("  flagged, most first:", ", ".join(f"{n} {100 * flagged[no][g.name[no] == n].mean():.0f} of {(g.name[no] == n).sum()}" for n in names[:10]))
        print(f"  texts with trigger words: {g.mean(flagged, np.flatnonzero(self.trigger & g.innocent & told & self.judged)):.1f}")
        yes = np.flatnonzero(g.bad & told & self.judged)
        print("  found:", ", ".join(f"{n} {100 * flagged[yes][g.name[yes] == n].mean():.0f} of {(g.name[yes] == n).sum()}" for n in sorted(set(g.name[yes]))))


if __name__ == "__main__":
    main()
