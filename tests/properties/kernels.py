"""Kernels that the campaign tests load by file: one sound, others with one fault."""

from __future__ import annotations

import os
import time

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
    """Wrong the first time in each process only."""

    contract = Contract(name="flaky", gradients=False)
    calls = 0

    @implements("masked_softmax")
    def softmax(self, scores: np.ndarray) -> np.ndarray:
        type(self).calls += 1
        return np.asarray(Sound.softmax(self, scores) * np.float32(2 if self.calls == 1 else 1))


def plain_softmax(scores: np.ndarray) -> np.ndarray:
    """A function without a class."""
    return Sound().softmax(scores)
