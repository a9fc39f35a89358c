"""What a backend declares of itself. Declarations are not evidence: some are checked, all are
printed.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from assay.spec.arithmetic import FORMATS, Arithmetic

DTYPES: tuple[str, ...] = ("float16", "bfloat16", "float32", "float64")

Reduction = Literal["unspecified", "fixed"]
EmptyRow = Literal["zeros", "nan", "mean_v", "unspecified"]
BlockedNonfinite = Literal["isolates", "propagates"]
BatchInvariant = Literal["bitwise", "bound"]
Accuracy = Literal["elementwise", "normwise"]
Alignment = Literal["offset", "square", "top_left", "bottom_right"]
Exponential = Literal["exp", "exp2"]
MaskKind = Literal["bool", "additive"]


@dataclass(frozen=True)
class Contract:
    """A backend's own promises.

    name               shown everywhere; must not hold spaces
    dtypes             element types that it takes, best first
    device             torch device string, or "cpu"
    provider           who computes ("numpy", "ATen", "own Triton kernel", ...)
    accumulate         format of products and sums; None: float32 for 16-bit types, else the dtype
                       itself; "input": the dtype itself, for 16-bit types too
    intermediate       format in which scores and weights are kept between stages; None: as
                       ``accumulate``
    reduction          "fixed": the summation order does not depend on other dimensions
    exp_ulps           error of its exponential in ulps of ``accumulate``
    exponential        "exp2" when scores are multiplied by log2(e) first
    block_sizes        tile sizes along queries and keys; sizes around their multiples are drawn
                       more often
    least_length       length of the shortest axes that are drawn: 2 where a kernel is compiled anew
                       for every axis of length 1
    compile_seconds    that a call may take beyond its limit, and a cell beyond its own, since the
                       first call of a kind compiles
    subnormals         False: may flush them to zero
    deterministic      the same call gives the same bits
    empty_row          what a query without visible key gets
    blocked_nonfinite  "propagates": NaN and inf at blocked positions may reach outputs (the weaker
                       promise)
    batch_invariant    "bitwise": a row's bits do not depend on its batch
    accuracy           "normwise": convolutions transform their operands first, as Winograd's and
                       fast ones do, so that an error is small beside the norms of a whole grid, not
                       beside each element (the weaker promise)
    grouped_heads      takes fewer key/value heads than query heads
    value_width        takes values of another width than keys
    causal_alignment   "offset": takes an offset; "square": causal only where L = S; else the corner
                       of the triangle
    masks              kinds of mask that it takes
    gradients          derivatives are offered
    modes              ways to call it that must agree; every property runs in each
    witness            kernel names of which one must run; empty: not checked
    requires           packages and versions that it was written for, for the report
    """

    name: str
    dtypes: tuple[str, ...] = ("float32",)
    device: str = "cpu"
    provider: str = ""
    accumulate: str | None = None
    intermediate: str | None = None
    reduction: Reduction = "unspecified"
    exp_ulps: float = 2.0
    exponential: Exponential = "exp"
    block_sizes: tuple[int, ...] = ()
    least_length: int = 1
    compile_seconds: float = 0.0
    subnormals: bool = True
    deterministic: bool = True
    empty_row: EmptyRow = "zeros"
    blocked_nonfinite: BlockedNonfinite = "isolates"
    batch_invariant: BatchInvariant = "bound"
    accuracy: Accuracy = "elementwise"
    grouped_heads: bool = False
    value_width: bool = False
    causal_alignment: Alignment = "offset"
    masks: tuple[MaskKind, ...] = ("bool", "additive")
    gradients: bool = True
    modes: tuple[str, ...] = ("default",)
    witness: tuple[str, ...] = ()
    requires: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.name or any(c.isspace() for c in self.name):
            raise ValueError(f"name={self.name!r} must be a word without spaces")
        _each("dtypes", self.dtypes, DTYPES)
        _each("masks", self.masks, get_args(MaskKind), may_be_empty=True)
        for field, valid in _CHOICES.items():
            if getattr(self, field) not in valid:
                raise ValueError(
                    f"{field}={getattr(self, field)!r} is not valid; valid: {sorted(valid)}"
                )
        for field in ("accumulate", "intermediate"):
            value = getattr(self, field)
            valid_formats = [*sorted(FORMATS), "input"]
            if value is not None and value not in valid_formats:
                raise ValueError(f"{field}={value!r} is not a format; valid: {valid_formats}")
        if not self.modes or any(size < 1 for size in self.block_sizes) or self.exp_ulps < 0:
            raise ValueError(
                f"modes={self.modes!r} must not be empty, block_sizes={self.block_sizes!r} must be "
                f"positive and exp_ulps={self.exp_ulps!r} at least 0"
            )
        if self.least_length < 1 or self.compile_seconds < 0:
            raise ValueError(
                f"least_length={self.least_length!r} must be at least 1 and "
                f"compile_seconds={self.compile_seconds!r} at least 0"
            )

    def arithmetic(self, dtype: str) -> Arithmetic:
        """The rounding that error bounds for ``dtype`` assume.

        >>> Contract("x", dtypes=("bfloat16",)).arithmetic("bfloat16").accumulate
        'float32'
        """
        accumulate = self.accumulate or ("float32" if dtype in ("float16", "bfloat16") else dtype)
        accumulate = dtype if accumulate == "input" else accumulate
        # A contract's formats are those of its widest computation: a float64 run of a float32
        # accumulator is held to float32, a float16 run of a float64 one to float64.
        return Arithmetic(
            storage=dtype,
            accumulate=accumulate,
            intermediate=dtype if self.intermediate == "input" else self.intermediate or accumulate,
            exp_ulps=self.exp_ulps,
            block=min(self.block_sizes, default=16),
            flush=not self.subnormals,
            exp2=self.exponential == "exp2",
            normwise=self.accuracy == "normwise",
        )

    def rows(self) -> list[tuple[str, Any]]:
        """Field names and values, for printing."""
        return [(f.name, getattr(self, f.name)) for f in fields(self)]


_CHOICES: dict[str, tuple[str, ...]] = {
    "reduction": get_args(Reduction),
    "empty_row": get_args(EmptyRow),
    "blocked_nonfinite": get_args(BlockedNonfinite),
    "batch_invariant": get_args(BatchInvariant),
    "accuracy": get_args(Accuracy),
    "causal_alignment": get_args(Alignment),
    "exponential": get_args(Exponential),
}


def _each(
    field: str, values: tuple[str, ...], valid: tuple[str, ...], *, may_be_empty: bool = False
) -> None:
    if isinstance(values, str) or (not values and not may_be_empty):
        raise ValueError(f"{field}={values!r} must be a tuple of names; valid: {sorted(valid)}")
    for value in values:
        if value not in valid:
            raise ValueError(f"{field} holds {value!r}, which is not valid; valid: {sorted(valid)}")
