"""Makes classify/model/testdata/expected.safetensors: what the package itself gives for texts.txt.

    python fixtures.py [--package DIR] [--cache DIR]

The texts are the lines of classify/model/testdata/texts.txt, then each 12 lines joined, then each
60; encoder_test.go makes the same list. For each the package's token ids, without <s> and </s>, and
its embedding, rounded to 8 bits with one scale. Options as those of table.py; needs numpy.
"""

import argparse
import importlib
import pathlib
import sys

import numpy as np

import container
import table


def texts(path):
    lines = path.read_text(encoding="utf-8").removesuffix("\n").split("\n")
    return lines + ["\n".join(lines[at : at + n]) for n in (12, 60) for at in range(0, len(lines), n)]


def main():
    root = pathlib.Path(__file__).resolve().parent.parent.parent
    data = root / "classify" / "model" / "testdata"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--package", type=pathlib.Path)
    parser.add_argument("--cache", type=pathlib.Path, default=root / ".cache" / "use")
    args = parser.parse_args()

    folder = args.package or table.fetch(args.cache)
    sys.path.insert(0, str(folder.parent))
    package = importlib.import_module(folder.name).USE(threads=1)

    rows = texts(data / "texts.txt")
    ids = [package._tokenizer.encode(text, add_bos=False, add_eos=False) for text in rows]
    vectors = np.stack([package.encode(text) for text in rows])
    scales = np.abs(vectors).max(axis=1) / 127
    container.write(
        data / "expected.safetensors",
        {
            "counts": np.array([len(row) for row in ids], np.uint32),
            "ids": np.concatenate([np.array(row, np.uint32) for row in ids]),
            "embeddings": np.rint(vectors / scales[:, None]).astype(np.int8),
            "scales": scales.astype(np.float32),
        },
        {"source": table.PACKAGE},
    )
    print(len(rows), "texts,", sum(map(len, ids)), "tokens")


if __name__ == "__main__":
    main()
