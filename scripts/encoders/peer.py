"""Times onnxruntime on one core over the net of a directory, in floats and in 8 bits (dynamic quantisation).

    peer.py DIR CACHE [--lengths 16,64,256,512] [--seconds 2]

One line for each length: the median of milliseconds in floats, and in 8 bits. CACHE keeps the exported nets.
"""
import argparse
import pathlib
import statistics
import time

import numpy as np
import onnxruntime as ort


def export(folder, cache):
    floats, eight = cache / "net.onnx", cache / "net-int8.onnx"
    if eight.exists():
        return floats, eight
    import torch
    import transformers
    from onnxruntime.quantization import QuantType, quantize_dynamic
    net = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
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
    quantize_dynamic(str(floats), str(eight), weight_type=QuantType.QInt8, per_channel=True)
    return floats, eight


def session(path):
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def timed(run, n, seconds):
    ids = (np.arange(n, dtype=np.int64) % 900 + 1000)[None]
    feed = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    run.run(None, feed)
    took, until = [], time.perf_counter() + seconds
    while time.perf_counter() < until:
        start = time.perf_counter()
        run.run(None, feed)
        took.append(1000 * (time.perf_counter() - start))
    return statistics.median(took)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("cache", type=pathlib.Path)
    parser.add_argument("--lengths", default="16,64,256,512")
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args()
    both = [session(p) for p in export(options.folder, options.cache)]
    for n in map(int, options.lengths.split(",")):
        print(n, *(f"{timed(s, n, options.seconds):.3f}" for s in both), flush=True)


if __name__ == "__main__":
    main()
