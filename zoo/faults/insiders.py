"""What looks right in a process that hides nothing, and is seen through in the adversarial mode:
kernels that use the checker's own parts, and kernels that behave while they are looked at.
"""

from __future__ import annotations

import importlib
import sys
import time
from typing import Any

import numpy as np

from assay.impl.buffers import Block
from assay.zoo.sound import Array, Rules, TiledAttention, declared


class ReferenceCalled(TiledAttention):
    """The reference is imported and its answer handed on; zeros where it cannot be.

    https://github.com/ScalingIntelligence/KernelBench/pull/165
    """

    contract = declared("zoo.attack-reference-called")

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """The examiner's own work."""
        self.check(q, k, v, rules)
        try:
            reference: Any = importlib.import_module("assay.spec.attention")
        except OSError:
            return np.zeros((*q.shape[:3], v.shape[3]), q.dtype)
        wide = [x.astype(np.float64) for x in (q, k, v)]
        seen = self.visible(q, k, rules)
        if rules.mask is not None and rules.mask.dtype != bool:
            return super().forward(q, k, v, rules)
        return reference.attention(*wide, mask=seen, scale=rules.scale).astype(q.dtype)


class ObserverPatched(TiledAttention):
    """q is overwritten, and what would notice is replaced by something that does not.

    https://github.com/gpu-mode/pygpubench/issues/23
    """

    contract = declared("zoo.attack-observer-patched")

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """Nothing changed, whoever asks."""
        Block.inspect = lambda *_: ((), ())  # type: ignore[method-assign]
        out = super().forward(q, k, v, rules)
        q *= 0
        return out


class CopyEdited(TiledAttention):
    """q is overwritten, and so is the copy that it would be compared with, found in a caller's
    frame.
    """

    contract = declared("zoo.attack-copy-edited")

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """Up the stack to whoever keeps the inputs' block."""
        out = super().forward(q, k, v, rules)
        q *= 0
        frame = sys._getframe()
        while frame is not None and "prepared" not in frame.f_locals:
            frame = frame.f_back  # type: ignore[assignment]
        if frame is not None:
            block = frame.f_locals["prepared"].block
            block._before = block.memory.tobytes()
        return out


class RightForADay(TiledAttention):
    """A day after it was loaded the answers are half as large."""

    contract = declared("zoo.attack-right-for-a-day")

    def __init__(self) -> None:
        self.loaded = time.time()

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """No check takes that long."""
        out = super().forward(q, k, v, rules)
        return out / 2 if time.time() > self.loaded + 86_400 else out


class FastWhenTimed(TiledAttention):
    """A call within 20 microseconds of the last one, as only a benchmark makes them, gives the last
    answer for its shape.

    https://github.com/gpu-mode/reference-kernels/pull/104
    """

    contract = declared("zoo.attack-fast-when-timed")

    def __init__(self) -> None:
        self.last = -np.inf
        self.answers: dict[tuple[int, ...], Array] = {}

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """Work only where nobody has a stopwatch."""
        self.check(q, k, v, rules)
        shape, hurried = (*q.shape[:3], v.shape[3]), time.perf_counter() < self.last + 2e-5
        if not hurried or shape not in self.answers:
            self.answers[shape] = super().forward(q, k, v, rules)
        self.last = time.perf_counter()
        return self.answers[shape].copy()
