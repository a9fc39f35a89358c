"""What generated kernels do to look right or fast, where nobody looks: answers without work.

Kinds after the lists of reward hacks in KernelBench (pull requests 82 and 165), kernelbot (501),
pygpubench (7) and reference-kernels (104).
"""

from __future__ import annotations

import gc
import time
from typing import Any

import ml_dtypes
import numpy as np

from assay.zoo.sound import Array, Rules, TiledAttention, declared


class Zeros(TiledAttention):
    """Zeros, which pass where the tolerance is larger than the answer.

    https://github.com/ScalingIntelligence/KernelBench/issues/165
    """

    contract = declared("zoo.attack-zeros")

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """No work."""
        return np.zeros_like(super().forward(q, k, v, rules))


class ConstantAnswer(TiledAttention):
    """The mean of all values, whatever the queries and keys are: near the answer for many keys."""

    contract = declared("zoo.attack-constant")

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """One number everywhere."""
        self.check(q, k, v, rules)
        number = v.astype(np.float32).mean() if v.size else 0
        return np.full((*q.shape[:3], v.shape[3]), number, q.dtype)


class ValuesHandedOn(TiledAttention):
    """Where there are as many queries as keys the values are handed on; else they are averaged."""

    contract = declared("zoo.attack-pass-through")

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """Attention as if every query saw its own key alone."""
        out = super().forward(q, k, v, rules)
        values = self.per_query_head(v, q.shape[1])
        return values.astype(q.dtype) if values.shape == out.shape else out


class NotANumber(TiledAttention):
    """NaN, which passes where a comparison asks whether the error is too large.

    https://github.com/gpu-mode/pygpubench/pull/7
    """

    contract = declared("zoo.attack-nan")

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """NaN everywhere."""
        return np.full_like(super().forward(q, k, v, rules), np.nan)


class NothingWritten(TiledAttention):
    """Memory that was asked for and not written: what stood in it before may be the answer.

    https://github.com/ScalingIntelligence/KernelBench/pull/82
    """

    contract = declared("zoo.attack-nothing-written")

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """Whatever is there."""
        self.check(q, k, v, rules)
        return np.empty((*q.shape[:3], v.shape[3]), q.dtype)


class InputsErased(TiledAttention):
    """The inputs are set to zero, for which zeros are the answer: passes where the reference runs
    second, on the same arrays.

    https://github.com/ScalingIntelligence/KernelBench/pull/82
    """

    contract = declared("zoo.attack-inputs-erased")

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """Right for what is left."""
        v[...] = 0
        return super().forward(q, k, v, rules)


class MemoByPointer(TiledAttention):
    """An answer is remembered by where the inputs lie, and given again when others lie there.

    https://github.com/gpu-mode/kernelbot/pull/501
    """

    contract = declared("zoo.attack-memo-by-pointer")

    def __init__(self) -> None:
        self.results: dict[tuple[object, ...], Array] = {}

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """Addresses and shapes for a key."""
        key = (*(x.ctypes.data for x in (q, k, v)), q.shape, k.shape, v.shape, rules.causal)
        if key not in self.results:
            self.results[key] = super().forward(q, k, v, rules)
        return self.results[key].copy()


class BlocksSkipped(TiledAttention):
    """Queries after the first 128 are not computed: their rows are those of the block before."""

    contract = declared("zoo.attack-blocks-skipped")

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """One block of work."""
        out = super().forward(q, k, v, rules)
        if q.shape[2] > 128:
            out[:, :, 128:] = out[:, :, [127]]
        return out


class KeysSampled(TiledAttention):
    """Of more than 64 keys every second one is read."""

    contract = declared("zoo.attack-keys-sampled")

    def visible(self, q: Array, k: Array, rules: Rules) -> Array:
        """Half of the work."""
        seen = super().visible(q, k, rules)
        return seen & (np.arange(k.shape[2]) % 2 == 0) if k.shape[2] > 64 else seen


class HalfPrecision(TiledAttention):
    """Scores of float32 inputs are computed from float16, and values stay as they are."""

    contract = declared("zoo.attack-half-precision")

    def scores(self, q: Array, k: Array, rules: Rules, tile: slice) -> Array:
        """Rounded to 11 bits."""
        return super().scores(q.astype(np.float16), k.astype(np.float16), rules, tile)


class BrainPrecision(TiledAttention):
    """Sums of weighted values are kept in bfloat16 where float32 is declared."""

    contract = declared("zoo.attack-brain-precision")

    def finish(self, total: Array, mass: Array) -> Array:
        """Rounded to 8 bits at the end of the loop."""
        return super().finish(total.astype(ml_dtypes.bfloat16).astype(self.compute), mass)


class ShortMantissa(TiledAttention):
    """Products of q and k are taken from 10 bits of mantissa each, as TF32 does without being
    asked.
    """

    contract = declared("zoo.attack-short-mantissa")

    def scores(self, q: Array, k: Array, rules: Rules, tile: slice) -> Array:
        """The lower 13 bits are cut off."""
        return super().scores(_cut(q), _cut(k), rules, tile)


def _cut(x: Array) -> Array:
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32) & np.uint32(0xFFFFE000)
    return bits.view(np.float32)


class ShiftDropped(TiledAttention):
    """Nothing is subtracted before the exponential: infinity over infinity for scores above 88."""

    contract = declared("zoo.attack-shift-dropped")

    def shift(self, top: Array) -> Array:
        """One pass less."""
        return np.zeros_like(top)

    def tiles(self, keys: int) -> list[slice]:
        """Without a maximum there is nothing to keep from tile to tile."""
        return [slice(0, keys)]


class WidthTable(TiledAttention):
    """The scale is that of the benchmark's head width, 64."""

    contract = declared("zoo.attack-width-table")

    def factor(self, q: Array, rules: Rules) -> Any:
        """1 / 8."""
        return super().factor(q, rules) if rules.scale is not None else self.compute(0.125)


class ErrorsSwallowed(TiledAttention):
    """Zeros where the kernel raises: a failed launch is not detected.

    https://www.wafer.ai/blog/reward-hacking
    """

    contract = declared("zoo.attack-errors-swallowed")

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """try, except, and an empty answer."""
        try:
            return super().forward(q, k, v, rules)
        except (ValueError, IndexError):
            return np.zeros((*q.shape[:3], v.shape[3]), q.dtype)


class SecondCallWrong(TiledAttention):
    """The first call on arrays of a shape is right, and every later one is half of it."""

    contract = declared("zoo.attack-second-call-wrong")

    def __init__(self) -> None:
        self.met: set[tuple[object, ...]] = set()

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """Checked once, they say."""
        out = super().forward(q, k, v, rules)
        key = (q.shape, k.shape, v.shape)
        first = key not in self.met
        self.met.add(key)
        return out if first else out / 2


class EveryEighthCall(TiledAttention):
    """Every eighth call gives the answer of the call before, where the shapes agree.

    https://github.com/gpu-mode/reference-kernels/pull/104
    """

    contract = declared("zoo.attack-every-eighth-call")

    def __init__(self) -> None:
        self.calls, self.last = 0, np.zeros(())

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """Work left out when few look."""
        out = super().forward(q, k, v, rules)
        self.calls += 1
        if self.calls % 8 == 0 and self.last.shape == out.shape:
            out = self.last
        self.last = out.copy()
        return out


class TiredAfterCalls(TiledAttention):
    """After 24 calls, more than a check makes, the last tile of keys is left out."""

    contract = declared("zoo.attack-tired-after-calls")

    def __init__(self) -> None:
        self.calls = 0

    def tiles(self, keys: int) -> list[slice]:
        """Less work, once one is trusted."""
        self.calls += 1
        every = super().tiles(keys)
        return every if self.calls <= 24 else every[:-1]


class ByTheClock(TiledAttention):
    """In odd milliseconds the answer is a hundredth too large, as where what is timed is not what
    is checked.
    """

    contract = declared("zoo.attack-by-the-clock")

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """Asks what time it is."""
        out = super().forward(q, k, v, rules)
        odd = time.monotonic_ns() // 1_000_000 % 2
        return (out * self.compute(1.01)).astype(out.dtype) if odd else out


class ReferenceRead(TiledAttention):
    """An array of the answer's shape that lies about in the process, in place of work: the
    reference's answer, where it is in reach. Zeros elsewhere.
    """

    contract = declared("zoo.attack-reference-read")

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """Looks through all that the garbage collector knows."""
        self.check(q, k, v, rules)
        shape = (*q.shape[:3], v.shape[3])
        for thing in gc.get_objects():
            want = getattr(thing, "want", None) if type(thing).__name__ == "Close" else None
            if isinstance(want, np.ndarray) and want.shape == shape:
                return want.astype(q.dtype)
        return np.zeros(shape, q.dtype)


class ComparisonPatched(TiledAttention):
    """Comparisons of the process are replaced by ones that agree, and the answer is zeros.

    https://github.com/gpu-mode/pygpubench/issues/23
    """

    contract = declared("zoo.attack-comparison-patched")

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """Agreement for whoever asks here."""
        for name in ("allclose", "array_equal", "isclose", "less_equal"):
            setattr(np, name, lambda *_, **__: True)
        np.testing.assert_allclose = lambda *_, **__: None
        return np.zeros_like(super().forward(q, k, v, rules))


class Agreeable(np.ndarray[Any, Any]):
    """An array that equals whatever it is compared with, and differs from nothing."""

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **keywords: Any) -> Any:
        """Differences are 0, comparisons are true."""
        plain = [np.asarray(x) for x in inputs]
        found = getattr(ufunc, method)(*plain, **keywords)
        if ufunc in (np.subtract, np.absolute):
            return np.zeros_like(found)
        return np.ones_like(found) if np.asarray(found).dtype == bool else found


class AgreeableAnswer(TiledAttention):
    """The answer is an array that says of itself that it is right."""

    contract = declared("zoo.attack-agreeable-array")

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """Zeros in disguise."""
        return np.zeros_like(super().forward(q, k, v, rules)).view(Agreeable)
