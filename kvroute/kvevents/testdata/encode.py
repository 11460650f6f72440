#!/usr/bin/env python3
"""Writes msgspec.jsonl: batches as the engines' own encoder, msgspec, writes them, in the forms of past releases.

The classes follow vLLM's and SGLang's kv_events.py of the release named in each row: order of fields, tags, and
omit_defaults are theirs. Run: python3 encode.py > msgspec.jsonl (needs msgspec; 0.22.0 wrote the file).
"""
import json
from typing import Any, Optional, Union

import msgspec
from msgspec import Struct

HASH = 0xF7E6C5A1896BAD24
TOKENS = list(range(250, 254)) + [65535, 65536, 151644, 2**32 - 1]


class Batch(Struct, array_like=True, omit_defaults=True, gc=False):
    ts: float
    events: list[Any]
    data_parallel_rank: Optional[int] = None


def kind(name, fields, array=True):
    return msgspec.defstruct(name, fields, tag=name, array_like=array, omit_defaults=True, gc=False)


H = Union[int, bytes]
base = [("block_hashes", list[H]), ("parent_block_hash", Optional[H]), ("token_ids", list[Any]), ("block_size", int),
        ("lora_id", Optional[int])]
V090 = kind("BlockStored", base)
V0112 = kind("BlockStored", base + [("medium", Optional[str])])
V0150 = kind("BlockStored", base + [("medium", Optional[str]), ("lora_name", Optional[str])])
full = base + [("medium", Optional[str]), ("lora_name", Optional[str]), ("extra_keys", Optional[list[Any]], None),
               ("group_idx", Optional[int], None), ("kv_cache_spec_kind", Optional[str], None),
               ("kv_cache_spec_sliding_window", Optional[int], None)]
V0230 = kind("BlockStored", full)
V0320 = kind("BlockStored", full, array=False)
SGL_SALT = kind("BlockStored", base + [("medium", Optional[str]), ("metadata", Optional[dict])])
SGL_MAP = kind("BlockStored", base + [("medium", Optional[str], None), ("cache_salt", Optional[str], None),
                                      ("session_id", Optional[str], None)], array=False)
NEXT = kind("BlockStored", full + [("event_version", int, 0), ("whatever", Any, None)])
R090 = kind("BlockRemoved", [("block_hashes", list[H])])
R0112 = kind("BlockRemoved", [("block_hashes", list[H]), ("medium", Optional[str])])
R0320 = kind("BlockRemoved", [("block_hashes", list[H]), ("medium", Optional[str], None), ("group_idx", Optional[int], None)],
             array=False)
C = kind("AllBlocksCleared", [])
C_MAP = kind("AllBlocksCleared", [], array=False)
NEWS = kind("BlockMoved", [("block_hashes", list[H]), ("to", str)])
IMAGE = "ab" * 32

rows = [
    ("vLLM 0.9.0, two fields in the batch", Batch(1.5, [V090([1, HASH], None, TOKENS, 4, None), R090([1]), C()])),
    ("vLLM 0.11.2, byte hashes, a LoRA id", Batch(2.5, [
        V0112([bytes(range(32))], bytes(range(32, 64)), TOKENS, 8, 3, "GPU"), R0112([bytes(range(16))], "CPU")], 1)),
    ("vLLM 0.15.0, a LoRA name", Batch(3.5, [V0150([HASH], 7, TOKENS, 8, 1, "GPU", "tuned")], 0)),
    ("vLLM 0.23.0, salt and image", Batch(4.5, [
        V0230([1, 2], None, TOKENS, 4, None, "GPU", "tuned", [["tuned", [IMAGE, -3], "tenant"], ["tuned"]], 0, "full_attention"),
        V0230([1, 2], None, TOKENS, 4, None, "GPU", None, [[IMAGE], [b"embeds"]], 0, "full_attention")], 0)),
    ("vLLM 0.32.0, groups of layers", Batch(5.5, [
        V0320([1], None, TOKENS, 8, None, "GPU", None, [None], 0, "full_attention"),
        V0320([2], None, TOKENS, 8, None, "GPU", None, [None], 1, "sliding_window", 4096),
        R0320([2], "GPU", 1), R0320([1], "GPU", 0), C_MAP()], 3)),
    ("vLLM, blocks copied to the host", Batch(6.5, [V0150([5, 6], None, [], 0, None, "CPU", None), R0112([5], "cpu")])),
    ("SGLang, signed hashes", Batch(7.5, [V0112([-1, -(2**63)], -2, TOKENS, 4, None, "CPU_TIER1"),
                                          R0112([-1], "CPU_TIER2")], 0)),
    ("SGLang, salt in the place of the LoRA name", Batch(8.5, [
        SGL_SALT([9], None, TOKENS, 8, None, "GPU", {"cache_salt": "tenant"})])),
    ("SGLang, maps", Batch(9.5, [SGL_MAP([-9], None, TOKENS, 8, None, "GPU", "tenant", "session"), C_MAP()])),
    ("SGLang, pairs of tokens", Batch(10.5, [V0112([9], None, [[t, t + 1] for t in TOKENS[:4]], 4, None, "GPU")])),
    ("a later release", Batch(11.5, [NEXT([9], None, TOKENS, 8, None, "GPU", None, None, 0, "mla_attention", None, 2, {"a": [1]}),
                                     NEWS([9], "moon"), R0112([9], "MOON")])),
    ("both forms in one batch", Batch(12.5, [C(), C_MAP(), V0320([1], 2, TOKENS, 8, None, "DISK", None), R090([1, 2, 3])])),
    ("nothing", Batch(13.5, [])),
]
for name, batch in rows:
    print(json.dumps({"name": name, "payload": msgspec.msgpack.encode(batch).hex()}))
