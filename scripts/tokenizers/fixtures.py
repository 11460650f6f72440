"""Writes the small tokenizers of tokenize/testdata, and what the reference library makes of
some texts with each: NAME.json, and NAME.golden, of which a line is [text, tokens, tokens with specials,
where the tokens without specials begin and end in bytes, tokens and types with specials of the text and
the line's number as a second text].

They are trained on this repository's README and a few sentences; each is there for settings that the
real files of the comparison lack.

    fixtures.py OUT [NAME...]        trains these, or all
    fixtures.py --golden OUT         writes the golden files of those that are there
                                     needs the pinned `tokenizers` (scripts/parts.sh tokenizers)
"""
import base64
import json
import pathlib
import sys

from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                        processors, trainers)

ROOT = pathlib.Path(__file__).parent.parent.parent
SENTENCES = [
    "Hello, world! It's 12345 o'clock; we'll see, I'VE SEEN, they'd go.",
    "Der Fluß fließt über große Straßen, naïve café, coöperate, Ångström.",
    "你好世界，今天天气很好。日本語のテキストです。カタカナ 한국어 텍스트 안녕하세요",
    "مرحبا بالعالم שלום עולם Привет мир, Γειά σου Κόσμε, สวัสดีชาวโลก नमस्ते दुनिया",
    "def f(x):\n    return [i**2 for i in range(10)]\n\n\tif (a != b) { return -1; }\r\n",
    "👩‍👩‍👧‍👦 👍🏽 🇩🇪 ❤️ e\u0301 n\u0303 \u1112\u1161\u11ab ½ ² Ⅷ ١٢٣ \u00a0\u3000x",
    "don't DON'T Don'T ÉTÉ'S été'LL ǅungla アAB Ａb /path//\n/x //\r\n",
    "HTTPServer camelCase XMLHttpRequest iPhone DŽ ǅ ʰ ª https://example.com/a/b?c=d//\n",
    "don't DON'T Don'T can'ſ 'S 'Ll 're'Ve a'b   trailing   \n \n  mixed \t\n",
]
EXTRA = [
    "", " ", "  ", "\n", "a", "é", "e\u0301", "\u0344", "\u0958", "가\u11a8", "<s>", " <s> </s>x", "a<mask> b", "a <mask>  b",
    "xword word wordy word", "[CLS] hello [SEP]", "Straße TAG tag Tag", "a" * 300, " " * 70, "\u0301" * 40,
    "q\u0323\u0307 q\u0307\u0323", "\uff21\u0301 \uff21\uff42 e\u0301\u0323 \u2460\u2026\u00bd \ufb01", "\u200b\u200ba \u0001", "\r\n\ta``b``  c   ",
    "\uff76\uff9e \uff76 \u3000 \u0600a \u1100\u1161\u0301 \u0915\u094d\u0915\u0301", "<unk>x <unk> \u4e2d<unk>", "\u00c5\u212b\ufdfa\u0390", "[UNK] [MASK]  ##a", "\x00\x01\x7f\u200d\ufeff\ufffd", "▁a ▁▁b", "<0x0A>\n", "ΑΣ İI ﬁ ŉ", "1234567 1 22 333 4444",
]

TEKKEN = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|"
          r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|"
          r"\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
CL100K = (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|"
          r"\s*[\r\n]|\s+(?!\S)|\s+")
CONTRACTION = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
O200K = (r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+" + CONTRACTION +
         r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*" + CONTRACTION +
         r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN35 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|"
          r"\s*[\r\n]+|\s+(?!\S)|\s+")
BYTES = pre_tokenizers.ByteLevel.alphabet()
FALLBACK = [f"<0x{b:02X}>" for b in range(256)]


# A small table of SentencePiece's, for Precompiled: no-break and ideographic space, tab and line end
# become a space, U+200B and U+0001 nothing, full-width A and B, the ligature fi, a half, a ring 1 and an
# ellipsis what they look like, and e with acute, a with diaeresis and half-width ka with its mark one
# character. Made by spm_train --normalization_rule_tsv.
CHARSMAP = (
    "AAQAAAAMAAAAAACAAQ0AAMw4AgABAACAiA0AABQAAIDMOAIAgQ0AAAo1AAAJOQAAFwAAgKAhAAAJAACAgCgCAIs5AAADAACA"
    "vXEAAKAFAAAHAACAgAQCAIBFAACBBQAAEQAAgKEFAAANAACADwAAgKIFAAC2BQAAGgAAgL6EAgCRtAIArNwCAJ4JAACmyQAA"
    "HgAAgCYAAAAnAAAAJAAAACUAAAAqAAAAKwAAACgAAAApAAAALgAAAC8AAAAsAAAALQAAALwkAgC9bAIAMAAAADEAAAA2AAAA"
    "NwAAADQAAAA1AAAAOgAAADsAAAA4AAAAOQAAAD4AAAA/AAAAPAAAAD0AAABCAAAAQwAAAEAAAABBAAAARgAAAEcAAABEAAAA"
    "RQAAAEoAAABLAAAASAAAAEkAAABOAAAATwAAAEwAAABNAAAAUgAAAFMAAABQAAAAUQAAAFYAAABXAAAAVAAAAFUAAABaAAAA"
    "WwAAAFgAAABZAAAAXgAAAF8AAABcAAAAXQAAAGIAAABjAAAAYbQCAGEAAABmAAAAZwAAAGW0AgBlAAAAagAAAGsAAABoAAAA"
    "aQAAAG4AAABvAAAAbAAAAG0AAAByAAAAcwAAAHAAAABxAAAAdgAAAHcAAAB0AAAAdQAAAHoAAAB7AAAAeAAAAHkAAAB+AAAA"
    "fwAAAHwAAAB9AAAAggAAAIMAAACAAAAAgQAAAIYAAACHAAAAhAAAAIUAAACKAAAAiwAAAIgAAACJAAAAjgAAAI8AAACMAAAA"
    "jQAAAJIAAACTAAAAkAAAAJEAAACWAAAAlwAAAJQAAACVAAAAmgAAAJsAAACYAAAAmQAAAJ4AAACfAAAAnAAAAJ0AAACiAAAA"
    "owAAAKAAAAChAAAApgAAAKcAAACkAAAApQAAAKoAAACrAAAAqAAAAKkAAACuAAAArwAAAKwAAACtAAAAsgAAALMAAACwAAAA"
    "sQAAALYAAAC3AAAAtAAAALUAAAC6AAAAuwAAALgAAAC5AAAAvgAAAL8AAAC8AAAAvQAAAMIAAADCtAEAwAAAAMEAAADGAAAA"
    "xwAAAMQAAADFAAAAygAAAMsAAADIAAAAyQAAAM4AAADPAAAAzAAAAM0AAADSAAAA0wAAANAAAADRAAAA1gAAANcAAADUAAAA"
    "1QAAANoAAADbAAAA2AAAANkAAADeAAAA3wAAANwAAADdAAAA49ABAOK8AQDgAAAA4QAAAOYAAADnAAAA5AAAAOUAAADqAAAA"
    "6wAAAOgAAADpAAAA74ABAO8AAADsAAAA7QAAAPIAAADzAAAA70gBAPEAAAD2AAAA9wAAAPQAAAD1AAAA+gAAAPsAAAD4AAAA"
    "+QAAAP4AAAD/AAAA/AAAAP0AAAAAIAAuLi4AMQAxLzIAQQBCAGZpAMOkAMOpAOOCqwDjgqwA")


def split(pattern, *first):
    return pre_tokenizers.Sequence([
        *first,
        pre_tokenizers.Split(Regex(pattern), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ])


def train(t, trainer, corpus):
    t.train_from_iterator(corpus, trainer)
    return t


def byte_level(corpus, pre, normalizer=None, **model):
    t = Tokenizer(models.BPE(**model))
    if normalizer:
        t.normalizer = normalizer
    t.pre_tokenizer = pre
    t.decoder = decoders.ByteLevel()
    specials = ["<s>", "</s>"]
    return train(t, trainers.BpeTrainer(vocab_size=450, special_tokens=specials, initial_alphabet=BYTES, show_progress=False), corpus)


def pieces(corpus, normalizer=None, pre=None, fallback=True, **model):
    t = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=fallback, **model))
    if normalizer:
        t.normalizer = normalizer
    if pre:
        t.pre_tokenizer = pre
    specials = ["<unk>", "<s>", "</s>"] + (FALLBACK if fallback else [])
    t = train(t, trainers.BpeTrainer(vocab_size=700, special_tokens=specials, limit_alphabet=150, show_progress=False), corpus)
    if fallback:  # trained as special tokens to get their ids; in real files they are plain ones
        d = json.loads(t.to_str())
        d["added_tokens"] = [a for a in d["added_tokens"] if a["content"] not in FALLBACK]
        t = Tokenizer.from_str(json.dumps(d))
    return t


def unigram(corpus, normalizer, pre, post, fallback=False):
    t = Tokenizer(models.Unigram())
    if normalizer:
        t.normalizer = normalizer
    t.pre_tokenizer = pre
    specials = ["<s>", "<pad>", "</s>", "<unk>"]
    # Without the lines of other scripts, so that some characters are unknown.
    train(t, trainers.UnigramTrainer(vocab_size=330, special_tokens=specials, unk_token="<unk>", show_progress=False), corpus)
    t.post_processor = post
    d = json.loads(t.to_str())
    if fallback:
        d["model"]["vocab"] += [[f, 0.0] for f in FALLBACK]
        d["model"]["byte_fallback"] = True
    return Tokenizer.from_str(json.dumps(d))


def bert(corpus, **normalizer):
    t = Tokenizer(models.WordPiece(unk_token="[UNK]", max_input_chars_per_word=40))
    t.normalizer = normalizers.BertNormalizer(**normalizer)
    t.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    t = train(t, trainers.WordPieceTrainer(vocab_size=500, special_tokens=specials, show_progress=False), corpus)
    t.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return t


def all_of(corpus):
    gpt2 = byte_level(corpus, pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=True))
    gpt2.add_special_tokens([AddedToken("<mask>", lstrip=True, rstrip=False, normalized=False)])
    gpt2.add_tokens([AddedToken("word", single_word=True, normalized=False), AddedToken("tag", normalized=True, rstrip=True)])
    gpt2.post_processor = processors.RobertaProcessing(("</s>", 1), ("<s>", 0))
    yield "gpt2", gpt2
    yield "tekken", byte_level(corpus, split(TEKKEN), ignore_merges=True)
    yield "cl100k", byte_level(corpus, split(CL100K))
    yield "qwen35", byte_level(corpus, split(QWEN35), normalizers.NFC())
    removed = byte_level(corpus, pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(O200K), "removed", invert=True),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ]))
    yield "o200k", removed
    for name, individual in (("digits", True), ("numbers", False)):
        yield name, byte_level(corpus, pre_tokenizers.Sequence([
            pre_tokenizers.Digits(individual_digits=individual), pre_tokenizers.ByteLevel(add_prefix_space=False)]))
    yield "nfd", byte_level(corpus, split(CL100K), normalizers.Sequence([normalizers.NFD(), normalizers.Lowercase()]))

    legacy = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    llama = pieces(corpus, legacy, fuse_unk=True)
    llama.add_tokens([AddedToken("tag", normalized=True), AddedToken("word", single_word=True, normalized=True, lstrip=True)])
    llama.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B", special_tokens=[("<s>", 1), ("</s>", 2)])
    yield "llama", llama
    meta = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first", split=False)
    yield "mistral", pieces(corpus, None, meta)
    yield "metaspace", pieces(corpus, None, pre_tokenizers.Metaspace(prepend_scheme="always", split=True), False, fuse_unk=False)
    yield "fused", pieces(corpus, None, pre_tokenizers.Metaspace(prepend_scheme="never", split=True), False, fuse_unk=True)
    uncased = bert(corpus, lowercase=True)
    uncased.add_tokens([AddedToken("Tag", normalized=True), AddedToken("word", single_word=True, normalized=False)])
    yield "bert", uncased
    yield "bert-cased", bert(corpus, lowercase=False, strip_accents=False, handle_chinese_chars=True)

    latin = [line for line in corpus if max(map(ord, line), default=0) < 0x250]
    pairs = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B:1 </s>:1", special_tokens=[("<s>", 0), ("</s>", 2)])
    charsmap = normalizers.Precompiled(base64.b64decode(CHARSMAP))
    words = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    yield "unigram", unigram(latin, charsmap, words, pairs)
    compat = normalizers.Sequence([
        normalizers.Replace("``", '"'), normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase(), charsmap])
    yield "unigram-bytes", unigram(latin, compat, pre_tokenizers.Metaspace(), processors.BertProcessing(("</s>", 2), ("<s>", 0)), True)
    stripped = normalizers.Sequence([
        normalizers.Strip(), normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), "▁")])
    yield "unigram-strip", unigram(latin, stripped, pre_tokenizers.Metaspace(split=False), processors.RobertaProcessing(("</s>", 2), ("<s>", 0)))


def in_bytes(text, offsets):
    at = [0]
    for c in text:
        at.append(at[-1] + len(c.encode()))
    return [[at[start], at[end]] for start, end in offsets]


def golden(out, name):
    t = Tokenizer.from_file(str(out / f"{name}.json"))
    with open(out / f"{name}.golden", "w") as f:
        for i, text in enumerate(SENTENCES + EXTRA):
            plain, whole = (t.encode(text, add_special_tokens=s) for s in (False, True))
            two = t.encode(text, str(i), add_special_tokens=True)
            line = [text, plain.ids, whole.ids, in_bytes(text, plain.offsets), two.ids, two.type_ids]
            f.write(json.dumps(line, separators=(",", ":")) + "\n")


def main(out, *names):
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    corpus = SENTENCES * 3 + (ROOT / "README.md").read_text().splitlines()
    for name, t in all_of(corpus):
        if names and name not in names:
            continue
        file = out / f"{name}.json"
        file.write_text(json.dumps(json.loads(t.to_str()), ensure_ascii=False, separators=(",", ":")) + "\n")
        golden(out, name)


if sys.argv[1] == "--golden":
    for path in sorted(pathlib.Path(sys.argv[2]).glob("*.golden")):
        golden(path.parent, path.stem)
else:
    main(*sys.argv[1:])
