"""Times onnxruntime on one core over the net of a directory, in floats and in 8 bits (dynamic quantisation).

    peer.py DIR CACHE [--lengths 16,64,256,512] [--seconds 2]

One line for each length: tokens, the median of milliseconds in floats, and in 8 bits, and how far the two agree:
the cosine between their means of the last hidden states. The text is that of BenchmarkNet in classify/encoder.
CACHE keeps the exported nets, each in a folder named by what it was made from.
"""
import argparse
import hashlib
import pathlib
import statistics
import time

import numpy as np
import onnxruntime as ort
import tokenizers

TEXT = "the quick brown fox jumps over a lazy dog and " * 80


def key(folder):
    """Names the net and the way it is exported."""
    digest = hashlib.sha256()
    for path in [pathlib.Path(__file__), folder / "config.json", *sorted(folder.glob("*.safetensors"))]:
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()[:16]


def export(folder, cache):
    cache = cache / key(folder)
    floats, eight = cache / "net.onnx", cache / "net-int8.onnx"
    if eight.exists():
        return floats, eight
    import torch
    import transformers
    from onnxruntime.quantization import QuantType, quantize_dynamic
    net = transformers.AutoModel.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    ids = torch.ones(1, 64, dtype=torch.long)

    class Last(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.net = net

        def forward(self, input_ids, attention_mask):
            return self.net(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state

    cache.mkdir(parents=True, exist_ok=True)
    axes = {"input_ids": {1: "n"}, "attention_mask": {1: "n"}, "out": {1: "n"}}
    torch.onnx.export(Last(), (ids, torch.ones_like(ids)), str(floats), input_names=["input_ids", "attention_mask"], output_names=["out"], dynamic_axes=axes, dynamo=False, opset_version=17)
    unfinished = cache / "unfinished.onnx"
    quantize_dynamic(str(floats), str(unfinished), weight_type=QuantType.QInt8, per_channel=True)
    unfinished.rename(eight)
    return floats, eight


def session(path):
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def feed(tokenizer, n):
    tokenizer.enable_truncation(n)
    ids = np.array([tokenizer.encode(TEXT).ids], dtype=np.int64)
    if ids.shape[1] != n:
        raise SystemExit(f"the text has {ids.shape[1]} tokens, and {n} are asked for")
    return {"input_ids": ids, "attention_mask": np.ones_like(ids)}


def timed(run, given, seconds):
    """The median of milliseconds, and the mean of the last hidden states."""
    mean = run.run(None, given)[0][0].mean(0)
    took, until = [], time.perf_counter() + seconds
    while not took or time.perf_counter() < until:
        start = time.perf_counter()
        run.run(None, given)
        took.append(1000 * (time.perf_counter() - start))
    return statistics.median(took), mean


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("cache", type=pathlib.Path)
    parser.add_argument("--lengths", default="16,64,256,512")
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args()
    tokenizer = tokenizers.Tokenizer.from_file(str(options.folder / "tokenizer.json"))
    tokenizer.no_padding()
    floats, eight = (session(p) for p in export(options.folder, options.cache))
    for n in map(int, options.lengths.split(",")):
        given = feed(tokenizer, n)
        (slow, want), (fast, got) = timed(floats, given, options.seconds), timed(eight, given, options.seconds)
        cosine = want @ got / (np.linalg.norm(want) * np.linalg.norm(got))
        print(n, f"{slow:.3f} {fast:.3f} {cosine:.5f}", flush=True)


if __name__ == "__main__":
    main()
