"""Linear heads over hashed n-grams; classify/model/heads.go uses them."""

import numpy as np
import scipy.sparse as sp


def fold(x: sp.csr_matrix, buckets: int) -> sp.csr_matrix:
    """x with its columns modulo buckets, a power of 2; ones stay ones."""
    folded = sp.csr_matrix((np.ones(x.nnz, np.float32), x.indices & (buckets - 1), x.indptr.copy()), shape=(x.shape[0], buckets))
    folded.sum_duplicates()
    folded.data[:] = 1
    return folded


def rarity(x: sp.csr_matrix) -> np.ndarray:
    """The weight of each column, log((1+rows)/(1+rows that have it)) + 1, in the 255 steps that the
    weights file has."""
    having = np.asarray((x > 0).sum(0)).ravel()
    idf = np.log((1 + x.shape[0]) / (1 + having)) + 1
    step = idf.max() / 255
    return (np.maximum(1, np.rint(idf / step)) * step).astype(np.float32)


def weigh(x: sp.csr_matrix, idf: np.ndarray, y: sp.csr_matrix | None = None) -> sp.csr_matrix:
    """Rows of x times idf, scaled to length 1; with y, the sum of both by their common length."""
    x = x @ sp.diags(idf)
    squares = np.asarray(x.multiply(x).sum(1)).ravel()
    if y is not None:
        y = y @ sp.diags(idf)
        squares += np.asarray(y.multiply(y).sum(1)).ravel()
        x = x + y
    return sp.csr_matrix(sp.diags(1 / np.sqrt(np.maximum(squares, 1e-9))) @ x)


def cut(w: np.ndarray, idf: np.ndarray) -> np.ndarray:
    """The weights without what is far above all others: a few n-grams weigh that much, and in the file they would leave
    coarse steps for the rest. What is measured is then what is served, but for the rounding to these steps."""
    product = np.asarray(w, np.float64) * idf
    top = np.maximum(np.quantile(np.abs(product), 0.9999, axis=1), 1e-9)[:, None]
    return np.clip(product, -top, top) / idf


def tensors(name: str, w: np.ndarray, bias: np.ndarray, idf: np.ndarray) -> dict[str, np.ndarray]:
    """The tensors of a head of weights that have been cut. Rows [bucket][1+class] are the idf in steps, and weights times
    it plus 128."""
    step = idf.max() / 255
    steps = np.rint(idf / step)
    product = np.asarray(w, np.float64) * steps
    scale = np.maximum(np.abs(product).max(axis=1), 1e-9) / 127
    q = np.rint(product / scale[:, None]) + 128
    return {name + ".rows": np.concatenate([steps[None], q]).T.astype(np.uint8), name + ".scale": scale.astype(np.float32),
            name + ".bias": np.asarray(bias, np.float32)}
