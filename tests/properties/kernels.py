"""Kernels that the campaign tests load by file: one sound, others with one fault."""

from __future__ import annotations

import os
import time
from pathlib import Path

import numpy as np

from assay.impl import Contract, NumpyBackend, implements


class Sound(NumpyBackend):
    contract = Contract(name="sound", gradients=False)

    @implements("masked_softmax")
    def softmax(self, scores: np.ndarray) -> np.ndarray:
        e = np.exp(scores - scores.max(axis=-1, keepdims=True, initial=-np.inf))
        return np.asarray(e / e.sum(axis=-1, keepdims=True))


class Wrong(Sound):
    contract = Contract(name="wrong", gradients=False)

    @implements("masked_softmax")
    def softmax(self, scores: np.ndarray) -> np.ndarray:
        return np.asarray(Sound.softmax(self, scores) * np.float32(1.01))


class Dies(Sound):
    contract = Contract(name="dies", gradients=False)

    @implements("masked_softmax")
    def softmax(self, scores: np.ndarray) -> np.ndarray:
        if scores.shape[-1] > 3:
            os.abort()
        return Sound.softmax(self, scores)


class Slow(Sound):
    contract = Contract(name="slow", gradients=False)

    @implements("masked_softmax")
    def softmax(self, scores: np.ndarray) -> np.ndarray:
        time.sleep(0.02)
        return Sound.softmax(self, scores)


class Flaky(Sound):
    """Wrong in the first call of all, which a file beside this one remembers."""

    contract = Contract(name="flaky", gradients=False)

    @implements("masked_softmax")
    def softmax(self, scores: np.ndarray) -> np.ndarray:
        called = Path(__file__).with_suffix(".called")
        first = not called.exists()
        called.touch()
        return np.asarray(Sound.softmax(self, scores) * np.float32(2 if first else 1))


class Memo(Sound):
    """Remembers its results by shape."""

    contract = Contract(name="memo", gradients=False)

    def __init__(self) -> None:
        self.results: dict[tuple[int, ...], np.ndarray] = {}

    @implements("masked_softmax")
    def softmax(self, scores: np.ndarray) -> np.ndarray:
        return self.results.setdefault(scores.shape, Sound.softmax(self, scores)).copy()


def plain_softmax(scores: np.ndarray) -> np.ndarray:
    """A function without a class."""
    return Sound().softmax(scores)


class Other(NumpyBackend):
    """Of another op."""

    contract = Contract(name="other", gradients=False)

    @implements("relu")
    def relu(self, x: np.ndarray) -> np.ndarray:
        return np.maximum(x, 0)
