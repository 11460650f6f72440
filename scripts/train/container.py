"""What all weights have in common: the file format, int8 layers, tiles.

The format is safetensors (https://github.com/huggingface/safetensors#format); data and tensors
begin at multiples of 64 bytes, so that a file embedded in the binary is used in place.
classify/model/safetensors.go reads it, classify/model/linear.go uses the layers.
"""

import hashlib
import json
import os

import numpy as np

ALIGN = 64
TILE_OUT = 64  # outputs whose weights lie together; linear.go has the same number

DTYPES = {"uint8": "U8", "int8": "I8", "int32": "I32", "uint32": "U32", "float32": "F32"}


def write(path, tensors, metadata):
    """Writes tensors, a dict name -> array, and metadata, a dict of strings. Same input, same bytes."""
    header, at = {"__metadata__": metadata}, 0
    for name, array in tensors.items():
        at = (at + ALIGN - 1) // ALIGN * ALIGN
        header[name] = {
            "dtype": DTYPES[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-(8 + len(text)) % ALIGN)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        begin = file.tell()
        for name, array in tensors.items():
            file.write(b"\0" * (begin + header[name]["data_offsets"][0] - file.tell()))
            file.write(np.ascontiguousarray(array).astype(array.dtype.newbyteorder("<")).tobytes())


def encoder() -> str:
    """The hash of what embeddings are made with (model.EncoderHash): the encoder that heads are trained for."""
    weights = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "classify", "model", "weights")
    h = hashlib.sha256()
    for name in ("tokens", "encoder"):
        with open(os.path.join(weights, name + ".safetensors"), "rb") as file:
            h.update(file.read())
    return h.hexdigest()[:12]


def tiles(w):
    """Reorders int8 weights [out][in] to [out/64][in/4][64][4], outputs filled up with zeros.

    in must be a multiple of 4. One step of the kernels' inner loop reads 256 bytes in a row.
    """
    out, width = w.shape
    if width % 4:
        raise ValueError(f"{width} inputs are not a multiple of 4")
    full = np.zeros((-(-out // TILE_OUT) * TILE_OUT, width), np.int8)
    full[:out] = w
    return np.ascontiguousarray(full.reshape(-1, TILE_OUT, width // 4, 4).transpose(0, 2, 1, 3))


def layer(name, w, bias):
    """The tensors of a dense layer y = x W^T + b as int8 with one scale an output.

    w is float [out][in], bias float [out]; each output's largest weight becomes 127.
    """
    w = np.asarray(w, np.float32)
    top = np.abs(w).max(axis=1)
    scale = np.where(top > 0, top / 127, 1).astype(np.float32)
    return {
        name + ".weight": tiles(np.rint(w / scale[:, None]).astype(np.int8)),
        name + ".scale": scale,
        name + ".bias": np.asarray(bias, np.float32),
    }
