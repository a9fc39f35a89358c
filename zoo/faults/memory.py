"""Faults of memory, state and interface: what is computed is right."""

from __future__ import annotations

import numpy as np

from assay.zoo.sound import Array, Rules, TiledAttention, declared


class InputOverwritten(TiledAttention):
    """q is scaled in place.

    https://github.com/ScalingIntelligence/KernelBench/pull/82
    """

    contract = declared("zoo.input-overwritten")

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """The workspace is the caller's q."""
        out = super().forward(q, k, v, rules)
        q *= self.factor(q, rules)
        return out


class OutputAliased(TiledAttention):
    """The output is written over q, and a view of q returned, where it has the shape of q."""

    contract = declared("zoo.output-aliased")

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """No memory of its own."""
        out = super().forward(q, k, v, rules)
        if out.shape != q.shape:
            return out
        q[...] = out
        return q


class StaleBuffer(TiledAttention):
    """One buffer for each output shape, returned again and again: a later call overwrites what an
    earlier one gave.

    https://github.com/ScalingIntelligence/KernelBench/pull/82
    """

    contract = declared("zoo.stale-buffer")

    def __init__(self) -> None:
        self.buffers: dict[tuple[int, ...], Array] = {}

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """Results go where the last ones went."""
        out = super().forward(q, k, v, rules)
        buffer = self.buffers.setdefault(out.shape, out)
        buffer[...] = out
        return buffer


class MemoByShape(TiledAttention):
    """The first result for the shapes of a call is the result of all later ones.

    https://github.com/gpu-mode/kernelbot/pull/501
    """

    contract = declared("zoo.memo-by-shape")

    def __init__(self) -> None:
        self.results: dict[tuple[object, ...], Array] = {}

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """Remembered by what is cheap to compare."""
        flags = (rules.causal, rules.offset, rules.window, rules.scale, rules.mask is None)
        key = (q.shape, k.shape, v.shape, *flags)
        if key not in self.results:
            self.results[key] = super().forward(q, k, v, rules)
        return self.results[key].copy()


class StridesIgnored(TiledAttention):
    """k is read in the order in which it lies in memory. Shows where k is not contiguous.

    https://github.com/pytorch/pytorch/issues/181133
    """

    contract = declared("zoo.strides-ignored")

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """Reshaped as if it were row-major."""
        return super().forward(q, k.ravel(order="K").reshape(k.shape), v, rules)


class WritesBeyond(TiledAttention):
    """One element is written after the end of k."""

    contract = declared("zoo.writes-beyond")

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """An index that is one too large."""
        out = super().forward(q, k, v, rules)
        if k.size and k.flags.c_contiguous:
            np.lib.stride_tricks.as_strided(k, (k.size + 1,), (k.itemsize,))[-1] = 0
        return out


class OtherDtype(TiledAttention):
    """The output is float64, whatever came in."""

    contract = declared("zoo.other-dtype")

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """Not rounded back."""
        return super().forward(q, k, v, rules).astype(np.float64)


class BatchDropped(TiledAttention):
    """A batch of one loses its axis."""

    contract = declared("zoo.batch-dropped")

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """Squeezed."""
        out = super().forward(q, k, v, rules)
        return out[0] if len(out) == 1 else out


class LastBitRandom(TiledAttention):
    """The last bits differ from call to call, as with atomic additions, and determinism is
    declared.
    """

    contract = declared("zoo.last-bit-random")

    def __init__(self) -> None:
        self.noise = np.random.default_rng(0)

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """One ulp more or less."""
        out = super().forward(q, k, v, rules)
        return np.where(self.noise.random(out.shape) < 0.5, out, np.nextafter(out, np.float32(0)))


class GlobalRandom(TiledAttention):
    """A number is taken from numpy's global random state."""

    contract = declared("zoo.global-random")

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """Somebody else's random numbers."""
        np.random.random()  # noqa: NPY002 - the fault
        return super().forward(q, k, v, rules)


class AcceptsAnything(TiledAttention):
    """Shapes that do not fit together are cut until they do."""

    contract = declared("zoo.accepts-anything")

    def check(self, q: Array, k: Array, v: Array, rules: Rules) -> None:
        """Nothing is refused."""

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """The common part of everything."""
        batch, keys = min(len(q), len(k)), min(k.shape[2], v.shape[2])
        width = min(q.shape[3], k.shape[3])
        return super().forward(
            q[:batch, ..., :width], k[:batch, :, :keys, :width], v[:batch, :, :keys], rules
        )


class NoKeysRefused(TiledAttention):
    """No keys at all raise, where rows of zeros are due.

    https://github.com/Dao-AILab/flash-attention/pull/2470
    """

    contract = declared("zoo.no-keys-refused")

    def check(self, q: Array, k: Array, v: Array, rules: Rules) -> None:
        """The maximum of nothing."""
        super().check(q, k, v, rules)
        if k.shape[2] == 0:
            raise ValueError("zero-size array to reduction operation maximum")


class Leak(TiledAttention):
    """Every call keeps a megabyte."""

    contract = declared("zoo.leak")

    def __init__(self) -> None:
        self.kept: list[Array] = []

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """A workspace that is never given back."""
        self.kept.append(np.ones(1 << 20, np.uint8))
        return super().forward(q, k, v, rules)
