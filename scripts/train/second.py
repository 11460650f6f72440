"""Fits how the scores of the guard's two stages are added up, and measures them together.

    second.py DATA [--cache DIR] [--kvasir PROGRAM] [--folds 0,1,2,3,4] [--chosen 1]

By rows of sources that neither has met: the first stage is the one in the binary, so sources that share anything with
those of its weights are left out; the second is one that learned from the other folds (finetune.py --base e5). Each
source counts once. What is printed of a fold was fitted on the other folds; the constants for classify/second.go are
fitted on all of them. Folds on which something was chosen, as the encoder was on fold 1, are fitted on and printed by
themselves, and are in no mean.
"""

import argparse
import json
import os
import subprocess

import numpy as np
from sklearn.linear_model import LogisticRegression

import features
import heldout
import sources

GREY = 0.3  # greyFrom of classify/second.go
FLAGGED, MISTAKEN = 0.7, 0.005  # the shipped threshold, and the share of innocent rows above it
ROLES = {"document": "tool", "system": "system", "user": "user"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--cache", default=os.path.join(features.ROOT, ".cache/train"))
    parser.add_argument("--kvasir", default=os.path.join(features.ROOT, "bin/kvasir"))
    parser.add_argument("--folds", default="0,1,2,3,4")
    parser.add_argument("--chosen", default="1")
    parser.add_argument("--seed", type=int, default=27)
    options = parser.parse_args()
    rows = sources.with_folds(sources.read(options.data, ambiguous=True))
    both = Both(rows, options)
    z = np.zeros(len(rows), np.float32)
    for k in both.folds:
        z[both.fold == k] = both.added(both.fit(both.own & (both.fold != k)))[both.fold == k]
    print("the first stage alone, at the shipped threshold:")
    both.report(both.first, both.cheap > FLAGGED)
    print("both, each fold by what was fitted on the others:")
    both.report(z, z > np.log(FLAGGED / (1 - FLAGGED)))
    print("constants of all folds: second %.3f, first %.3f, summand %.3f, of what is only read %.3f" % both.fit(both.own))


class Both:
    """Scores of both stages. cheap: probabilities of the first, the role's odds in them; first: their log odds
    without these; second: the encoder's log odds; prior: those of the role."""

    def __init__(self, rows: list[dict], options):
        self.fold = np.array([r["fold"] for r in rows])
        self.folds = [int(k) for k in options.folds.split(",")]
        self.reported = [k for k in self.folds if k not in map(int, options.chosen.split(","))]
        self.prior = np.array([heldout.PRIOR.get(r["role"], 0) for r in rows])
        learned = {r["group"] for r in rows if not r.get("new")}
        self.own = np.array([bool(r.get("new")) and r["group"] not in learned for r in rows]) & np.isin(self.fold, self.folds)
        self.groups = heldout.Groups(rows)
        self.app = np.array([r["group"].startswith("app/") for r in rows])
        self.read = np.array([r["role"] == "document" for r in rows])
        self.trigger = np.array([r["trigger"] for r in rows])
        self.cheap = np.zeros(len(rows))
        self.cheap[self.own] = asked(options.kvasir, [r for r, own in zip(rows, self.own) if own])
        self.first = odds(self.cheap) - self.prior
        self.second = np.zeros(len(rows))
        for k in self.folds:
            path = sources.scores_at(options.cache, "encoder-e5", "all", options.seed, 0, k, sources.stamp(rows))
            self.second[self.fold == k] = np.load(path)
        self.grey = 1 / (1 + np.exp(-self.first)) >= GREY

    def fit(self, on: np.ndarray) -> tuple[float, float, float, float]:
        """Factors of both by logistic regression on what is grey, innocent rows and attacks counting alike; the summands, of
        what is said and of what is only read, so that MISTAKEN of the innocent rows lie above FLAGGED."""
        g = self.groups
        at = np.flatnonzero(on & self.grey & (g.innocent | g.bad))
        w = np.zeros(len(at))
        for side in (g.bad[at], ~g.bad[at]):
            w[side] = g.once(at[side]) / g.once(at[side]).sum()
        x = np.stack([self.second[at], self.first[at]], axis=1)
        fit = LogisticRegression(C=1e6).fit(x, g.bad[at], sample_weight=w * len(at))
        second, first = fit.coef_[0]
        z = np.where(self.grey, second * self.second + first * self.first + self.prior, -99)
        bounds = [g.bound(z, np.flatnonzero(on & g.innocent & (self.read == read)), MISTAKEN) for read in (False, True)]
        return second, first, *(np.log(FLAGGED / (1 - FLAGGED)) - b for b in bounds)

    def added(self, by: tuple[float, float, float, float]) -> np.ndarray:
        second, first, said, read = by
        return np.where(self.grey, second * self.second + first * self.first + np.where(self.read, read, said), self.first) + self.prior

    def report(self, z: np.ndarray, flagged: np.ndarray):
        g, users = self.groups, self.own & ~self.app
        told = self.own & np.isin(self.fold, self.reported)
        parts = [("sources", users & told), ("applications", told & self.app)]
        parts += [(f"  fold {k}: sources", users & (self.fold == k)) for k in self.folds] + [(f"  fold {k}: applications", self.own & self.app & (self.fold == k)) for k in self.folds]
        for name, own in parts:
            if not (g.bad & own).any() or not (g.innocent & own).any():
                continue
            auc, at1, found, wrong = heldout.figures(g, z, flagged, own)
            yes, no = np.flatnonzero(g.bad & own), np.flatnonzero(g.innocent & own)
            print(f"  {name}: AUC {auc:.3f}, found at 1 % {at1:.1f}, found {found:.1f}, flagged {wrong:.1f}, reach the second stage: "
                  f"{g.mean(self.grey, yes):.0f} of attacks, {g.mean(self.grey, no):.0f} of innocent ({len(yes)} of {len(set(g.name[yes]))}, {len(no)} of {len(set(g.name[no]))})")
        no = np.flatnonzero(g.innocent & told)
        names = sorted(set(g.name[no]), key=lambda n: -flagged[no][g.name[no] == n].mean())
        print("  flagged, most first:", ", ".join(f"{n} {100 * flagged[no][g.name[no] == n].mean():.0f}" for n in names[:8]))
        print(f"  texts with trigger words: {g.mean(flagged, np.flatnonzero(self.trigger & g.innocent & told)):.1f}")
        yes = np.flatnonzero(g.bad & told)
        print("  found:", ", ".join(f"{n} {100 * flagged[yes][g.name[yes] == n].mean():.0f} of {(g.name[yes] == n).sum()}" for n in sorted(set(g.name[yes]))))


def asked(program: str, rows: list[dict]) -> np.ndarray:
    """What the first stage in the binary says, in the role in which each row stands."""
    lines = "".join(json.dumps({"messages": [{"role": ROLES[r["role"]], "content": r["text"]}]}) + "\n" for r in rows)
    run = subprocess.run([program, "classify", "--set", "classify.second_stage=off", "--set", "classify.timeout=60s"], input=lines.encode(), capture_output=True, check=True)
    said = [json.loads(line) for line in run.stdout.split(b"\n") if line]
    if len(said) != len(rows):
        raise RuntimeError(f"cannot pair {len(said)} answers with {len(rows)} rows")
    return np.array([s.get("jailbreak", {}).get("score", 0.0) for s in said])


def odds(p: np.ndarray) -> np.ndarray:
    p = np.clip(p, 1e-6, 1 - 1e-6)
    return np.log(p / (1 - p))


if __name__ == "__main__":
    main()
