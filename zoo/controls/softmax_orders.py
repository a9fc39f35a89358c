"""Sound masked softmax with other exponentials and sums, in numpy."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from assay.zoo.sound import Array, RowSoftmax, allowed, declared

DTYPES = ("float32", "bfloat16", "float16")


class ShiftedRows(RowSoftmax):
    """Exponentials of the distance from the row's maximum, divided by their sum."""

    contract = declared(
        "zoo.softmax-rows", dtypes=DTYPES, block_sizes=(), blocked_nonfinite="isolates"
    )

    def forward(self, scores: Array, mask: Array | None) -> Array:
        """Each stage a method."""
        away = distance(scores.astype(np.float32), allowed(scores, mask))
        e = self.exp(away)
        mass = self.mass(e)
        return e / np.where(mass == 0, e.dtype.type(1), mass)

    def exp(self, x: Array) -> Array:
        """The exponential."""
        return np.exp(x)

    def mass(self, e: Array) -> Array:
        """The sum of each row [..., 1]."""
        return e.sum(axis=-1, keepdims=True)


def distance(x: Array, seen: Array) -> Array:
    """From the greatest score that is seen; -inf where blocked."""
    x = np.where(seen, x, -np.inf)
    top = x.max(axis=-1, keepdims=True, initial=-np.inf)
    return np.asarray(x - np.where(np.isneginf(top), x.dtype.type(0), top))


class BaseTwoRows(ShiftedRows):
    """Powers of two."""

    contract = declared(
        "zoo.softmax-base-two", dtypes=DTYPES, block_sizes=(), blocked_nonfinite="isolates",
        exponential="exp2",
    )  # fmt: skip

    def exp(self, x: Array) -> Array:
        """exp2 of multiples of log2(e)."""
        return np.exp2(x * np.float32(np.log2(np.e)))


class ReversedRows(ShiftedRows):
    """Summed from the last entry to the first, one by one."""

    contract = declared(
        "zoo.softmax-reversed", dtypes=DTYPES, block_sizes=(), blocked_nonfinite="isolates"
    )

    def mass(self, e: Array) -> Array:
        """The last of the running sums."""
        if not e.shape[-1]:
            return super().mass(e)
        return np.asarray(np.cumsum(e[..., ::-1], axis=-1)[..., -1:])


class LogarithmRows(ShiftedRows):
    """The logarithm of the sum is subtracted in place of a division.

    That rounds an exponent once more. Where its exponential is not 0 it is at least -104, so that
    this and the rounding of the logarithm are at most 128 u, 64 ulps of the exponential.
    """

    contract = declared(
        "zoo.softmax-logarithm", dtypes=DTYPES, block_sizes=(), blocked_nonfinite="isolates",
        exp_ulps=64.0,
    )  # fmt: skip

    def forward(self, scores: Array, mask: Array | None) -> Array:
        """exp((x - top) - log(sum))."""
        away = distance(scores.astype(np.float32), allowed(scores, mask))
        mass = self.mass(self.exp(away))
        return self.exp(away - np.log(np.where(mass == 0, np.float32(1), mass)))


class DoubleRows(ShiftedRows):
    """In float64, rounded once."""

    contract = declared(
        "zoo.softmax-double", dtypes=DTYPES, block_sizes=(), blocked_nonfinite="isolates"
    )

    def exp(self, x: Array) -> Array:
        """Wide from here on."""
        return np.exp(x.astype(np.float64))


class ColumnsFirst(ShiftedRows):
    """In memory the entries of a row lie far apart."""

    contract = declared(
        "zoo.softmax-columns", dtypes=DTYPES, block_sizes=(), blocked_nonfinite="isolates"
    )

    def mass(self, e: Array) -> Array:
        """Row after row of the transposed array."""
        columns = np.ascontiguousarray(np.moveaxis(e, -1, 0))
        return np.asarray(columns.sum(axis=0)[..., None])


class Bfloat16Rows(ShiftedRows):
    """Exponentials are stored as bfloat16; their sum is float32."""

    contract = declared(
        "zoo.softmax-bfloat16", dtypes=("bfloat16",), block_sizes=(), intermediate="input",
        blocked_nonfinite="isolates",
    )  # fmt: skip

    def exp(self, x: Array) -> Array:
        """Stored, and read again."""
        return np.exp(x).astype(ml_dtypes.bfloat16).astype(np.float32)
