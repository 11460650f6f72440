"""Small dense heads over views of texts: one hidden layer, several of them averaged.

Written out in numpy: with one hidden layer the gradient is six lines, and nothing else here needs
an autograd library of half a gigabyte.
"""

import numpy as np

import container
import features

SCALE = 16.0  # an embedding of length 1 has values of about 1/22


class Net:
    """relu(x W^T + b) V^T + c, trained by Adam with decoupled decay and a rate that falls to zero."""

    def __init__(self, rng: np.random.Generator, hidden: int, outputs: int, drop_in: float, drop: float, rate: float, decay: float, steps: int):
        self.rng, self.drop_in, self.drop = rng, drop_in, drop
        self.rate, self.decay, self.steps, self.step = rate, decay, steps, 0
        def uniform(out, width):
            return rng.uniform(-1, 1, (out, width)).astype(np.float32) / np.float32(np.sqrt(width))
        self.values = [uniform(hidden, features.DIM), np.zeros(hidden, np.float32), uniform(outputs, hidden), np.zeros(outputs, np.float32)]
        self.first = [np.zeros_like(v) for v in self.values]
        self.second = [np.zeros_like(v) for v in self.values]

    def keep(self, shape, drop: float) -> np.ndarray:
        """A mask that leaves out a share of values, and makes up for it in the others."""
        return (self.rng.random(shape, np.float32) >= drop).astype(np.float32) / np.float32(1 - drop)

    def forward(self, x: np.ndarray) -> np.ndarray:
        """Outputs for x [rows, features.DIM], with values left out; what backward needs is kept."""
        w, b, v, c = self.values
        self.x = x * self.keep(x.shape, self.drop_in)
        hidden = self.x @ w.T + b
        self.mask = (hidden > 0) * self.keep(hidden.shape, self.drop)
        self.hidden = hidden * self.mask
        return self.hidden @ v.T + c

    def backward(self, slope: np.ndarray, rows=slice(None)):
        """One step down. slope is that of the loss by the outputs; all rows but rows have none."""
        w, b, v, c = self.values
        inner = (slope @ v) * self.mask[rows]
        self.descend([inner.T @ self.x[rows], inner.sum(0), slope.T @ self.hidden[rows], slope.sum(0)])

    def descend(self, slopes):
        rate = self.rate * (1 - self.step / self.steps)
        self.step += 1
        for value, slope, first, second in zip(self.values, slopes, self.first, self.second):
            first += 0.1 * (slope - first)
            second += 0.001 * (slope * slope - second)
            unbiased = second / (1 - 0.999 ** self.step)
            value *= 1 - rate * self.decay
            value -= rate / (1 - 0.9 ** self.step) * first / (np.sqrt(unbiased) + 1e-8)


def average(nets: list[Net]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Several nets as one that gives the mean of their outputs: first weights and biases, for inputs
    that are not scaled, second weights and biases."""
    w, b, v, c = zip(*(n.values for n in nets))
    return np.concatenate(w) * SCALE, np.concatenate(b), np.concatenate(v, 1) / len(nets), sum(c) / len(nets)


def apply(layers, x: np.ndarray) -> np.ndarray:
    w, b, v, c = layers
    return np.maximum(x.astype(np.float32) @ w.T + b, 0) @ v.T + c


def tensors(name: str, layers) -> dict[str, np.ndarray]:
    w, b, v, c = layers
    return container.layer(name + ".hidden", w, b) | container.layer(name + ".out", v, c)


def softmax(z: np.ndarray) -> np.ndarray:
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def sigmoid(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-np.clip(z, -30, 30)))
