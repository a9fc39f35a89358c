"""Running error analysis: arrays that carry, beside their exact value, a bound on the error of any
sound floating-point evaluation of them.

The spec's own function is run on ``Inexact`` arrays, and what comes out holds the value and the
error bound of its result. Source: N. Higham, Accuracy and Stability of Numerical Algorithms, 2nd
ed., sections 3.3 and 4.2. With r = u_acc + u_mid the unit roundoff of one operation, tau the
absolute error of one that underflows, and a hat on what is computed, |x^ - x| <= e_x and |y^ - y|
<= e_y entail

    x + y          e_x + e_y + r (|x + y| + e_x + e_y)
    x y            |x| e_y + e_x |y| + e_x e_y, and r of the largest product, and tau
    x / y          (e_x + |x / y| e_y) / (|y| - e_y), and 2 r (a reciprocal, then a product), and tau
    sum of n       sum e + gamma_{n-1} sum (|x| + e), for every order of summation
    dot product    as products summed: gamma_n, fused or not
    f(x)           e_x times the largest |f'| on [x - e_x, x + e_x], and the error of f itself
    max, |x|       no larger than the largest e; nothing is rounded
    select         the error of what is selected; where the condition itself is not certain, the
                   distance to the other branch as well

A value whose error bound reaches the largest number of the format may overflow: its bound is
infinite. What is only moved (indexing, reshaping, padding) keeps its error, and an input has none.
An evaluation that is arranged differently (a product of sums expanded, a sum of squares less a
squared mean) is not covered by the rules alone: the op's own bound adds such forms, and says so.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin
from numpy.lib.stride_tricks import sliding_window_view

from assay.spec.arithmetic import FORMATS, Arithmetic, gamma
from assay.spec.error_function import error_function
from assay.spec.scalars import Array

Name = TypeVar("Name", bound=Hashable)

RUNNING_SLACK = 1.0 + 2.0**-8
"""The bound itself is calculated in float64, and the reference in little more than the precision
that is judged: their own errors are below this share of any bound.
"""


@dataclass(frozen=True)
class Uncertain:
    """A condition that was evaluated on inexact numbers: what it says, and where that is sure."""

    value: Array
    sure: Array

    dtype = np.dtype(bool)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the condition."""
        return self.value.shape

    def __and__(self, other: Uncertain | Array) -> Uncertain:
        return _joined(self, other, np.logical_and, settled=False)

    def __or__(self, other: Uncertain | Array) -> Uncertain:
        return _joined(self, other, np.logical_or, settled=True)

    def __invert__(self) -> Uncertain:
        return Uncertain(~self.value, self.sure)

    def __array_function__(
        self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        if function is not np.where:
            raise TypeError(f"{function.__name__} of an uncertain condition is not defined")
        return _where(*args)

    __rand__ = __and__
    __ror__ = __or__
    __hash__ = None  # type: ignore[assignment]


def _joined(a: Uncertain, b: Any, join: Any, *, settled: bool) -> Uncertain:
    """A sure operand that settles the result makes it sure, whatever the other one is."""
    b = b if isinstance(b, Uncertain) else Uncertain(np.asarray(b), np.ones(np.shape(b), bool))
    decided = (a.sure & (a.value == settled)) | (b.sure & (b.value == settled))
    return Uncertain(join(a.value, b.value), (a.sure & b.sure) | decided)


class Inexact(NDArrayOperatorsMixin):
    """Values [...], a bound [...] on the error of each, and the arithmetic that makes the errors.

    >>> x = Inexact(np.array([1.0, 2.0]), 0.0, Arithmetic())
    >>> y = (x + x).sum()
    >>> float(y.value), bool(0 < float(y.error) < 1e-6)
    (6.0, True)
    """

    def __init__(self, value: Any, error: Any, arithmetic: Arithmetic) -> None:
        self.value = np.asarray(value)
        error = np.broadcast_to(np.asarray(error, dtype=np.float64), self.value.shape)
        self.error = np.where(np.isnan(error), np.inf, error)
        self.arithmetic = arithmetic

    # What is moved and not calculated with -----------------------------------------------------

    def _moved(self, move: Callable[[Array], Array]) -> Inexact:
        return Inexact(move(self.value), move(self.error), self.arithmetic)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the values."""
        return self.value.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.value.ndim

    @property
    def size(self) -> int:
        """Number of values."""
        return self.value.size

    @property
    def dtype(self) -> np.dtype[Any]:
        """Format in which the values are held: wider than the one that is analysed."""
        return self.value.dtype

    @property
    def T(self) -> Inexact:
        """All axes reversed."""
        return self._moved(np.transpose)

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Inexact:
        return self._moved(lambda x: x[index])

    def __setitem__(self, index: Any, new: Any) -> None:
        new = _inexact(new, self.arithmetic)
        self.value[index], self.error[index] = new.value, new.error

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError(
            "an Inexact array is not an array of floats: np.asarray would lose its error"
        )

    def reshape(self, *shape: Any) -> Inexact:
        """The same numbers in another shape."""
        return self._moved(lambda x: x.reshape(*shape))

    def swapaxes(self, a: int, b: int) -> Inexact:
        """Two axes exchanged."""
        return self._moved(lambda x: x.swapaxes(a, b))

    def transpose(self, *axes: Any) -> Inexact:
        """Axes in another order."""
        return self._moved(lambda x: x.transpose(*axes))

    def copy(self) -> Inexact:
        """Values and errors copied."""
        return self._moved(np.copy)

    def astype(self, dtype: Any, **_: Any) -> Inexact:
        """Unchanged: the format is the arithmetic's affair."""
        return self.copy()

    def sum(self, axis: Any = None, keepdims: bool = False) -> Inexact:
        """Sum, for any order of summation."""
        return _sum(self, axis, keepdims)

    def mean(self, axis: Any = None, keepdims: bool = False) -> Inexact:
        """Sum divided by the number of terms."""
        return _mean(self, axis, keepdims)

    # Calculation -------------------------------------------------------------------------------

    @property
    def unit(self) -> float:
        """Unit roundoff r of one operation, whose result may be stored."""
        return self.arithmetic.u_acc + self.arithmetic.u_mid

    @property
    def reach(self) -> Array:
        """Largest magnitude that a computed value may have."""
        return np.abs(self.value).astype(np.float64) + self.error

    def computed(self, value: Array, inherited: Array, own: Array | float, tau: bool) -> Inexact:
        """The result of one operation: ``own`` roundings relative to its largest magnitude."""
        inherited = np.where(np.isnan(inherited), np.inf, inherited)
        size = np.abs(value).astype(np.float64) + inherited
        error = inherited + own * size
        if tau:
            error = error + np.where(size > 0, self.arithmetic.tau_acc, 0.0)
        largest = min(
            FORMATS[a].max for a in (self.arithmetic.accumulate, self.arithmetic.intermediate)
        )
        error = np.where((size + error >= largest) & ~np.isinf(value), np.inf, error)
        return Inexact(value, error, self.arithmetic)

    def erf(self) -> Inexact:
        """Error function: |erf'| = 2/sqrt(pi) exp(-x^2), largest at the point nearest to 0."""
        nearest = np.maximum(np.abs(self.value) - self.error, 0.0)
        slope = 2.0 / math.sqrt(math.pi) * np.exp(-(nearest**2))
        return _smooth(self, error_function, slope * self.error)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        if method == "reduce" and ufunc in (np.add, np.maximum):
            fold = {np.add: np.sum, np.maximum: np.max}[ufunc]
            return _FUNCTIONS[fold](*inputs, **{n: x for n, x in kwargs.items() if n != "dtype"})
        rule = _UFUNCS.get(ufunc)
        if method != "__call__" or rule is None:
            raise TypeError(f"no error rule for {ufunc.__name__} ({method})")
        with np.errstate(all="ignore"):
            return rule(*(_operand(x, self.arithmetic) for x in inputs), **kwargs)

    def __array_function__(
        self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        rule = _FUNCTIONS.get(function)
        if rule is None:
            raise TypeError(f"no error rule for numpy.{function.__name__}")
        with np.errstate(all="ignore"):
            return rule(*args, **kwargs)


def _inexact(x: Any, arithmetic: Arithmetic) -> Inexact:
    return x if isinstance(x, Inexact) else Inexact(x, 0.0, arithmetic)


def _constant(x: float, arithmetic: Arithmetic) -> Inexact:
    """A constant of the formula: it may have to be rounded to the format."""
    exact = float(np.abs(x)) < 2.0**8 and float(x * 256.0).is_integer()
    exact = exact or not np.isfinite(x)
    return Inexact(x, 0.0 if exact else arithmetic.u_acc * abs(float(x)), arithmetic)


def _operand(x: Any, arithmetic: Arithmetic) -> Any:
    if isinstance(x, Inexact | Uncertain):
        return x
    if isinstance(x, float | np.floating):
        return _constant(float(x), arithmetic)
    array = np.asarray(x)
    return array if array.dtype == bool else Inexact(array, 0.0, arithmetic)


# Elementwise rules ---------------------------------------------------------------------------------


def _add(x: Inexact, y: Inexact, sign: int = 1) -> Inexact:
    value = x.value + sign * y.value
    # Adding an exact 0 is exact.
    trivial = ((x.value == 0) & (x.error == 0)) | ((y.value == 0) & (y.error == 0))
    return x.computed(value, x.error + y.error, np.where(trivial, 0.0, x.unit), tau=False)


def _multiply(x: Inexact | Array, y: Inexact | Array) -> Inexact:
    if not isinstance(x, Inexact) or not isinstance(y, Inexact):
        number, mask = (x, y) if isinstance(x, Inexact) else (y, x)
        assert isinstance(number, Inexact)
        return number._moved(lambda part: part * np.asarray(mask))
    inherited = (
        _times(np.abs(x.value), y.error)
        + _times(x.error, np.abs(y.value))
        + _times(x.error, y.error)
    )
    one = (np.abs(x.value) == 1) & (x.error == 0) | (np.abs(y.value) == 1) & (y.error == 0)
    result = x.computed(x.value * y.value, inherited, np.where(one, 0.0, x.unit), tau=True)
    return Inexact(result.value, np.where(one, inherited, result.error), x.arithmetic)


def _times(a: Array, b: Array) -> Array:
    """Product of magnitudes; 0 times an unknown (infinite) error is 0 only where the 0 is exact."""
    return np.where((a == 0) & ~np.isinf(b) | (b == 0), 0.0, a * b).astype(np.float64)


def _divide(x: Inexact, y: Inexact) -> Inexact:
    value = x.value / y.value
    least = np.abs(y.value) - y.error
    inherited = (x.error + _times(np.abs(value), y.error)) / np.where(least > 0, least, np.nan)
    inherited = np.where((x.value == 0) & (x.error == 0) & (least > 0), 0.0, inherited)
    inherited = np.where((y.value == 0) & (y.error == 0), 0.0, inherited)
    return x.computed(value, inherited, 2.0 * x.unit, tau=True)


def _smooth(x: Inexact, function: Callable[[Array], Array], inherited: Array) -> Inexact:
    value = function(x.value)
    own = np.where(np.abs(value) == 0, 0.0, x.arithmetic.eta + x.arithmetic.u_mid)
    return x.computed(value, np.where(x.error == 0, 0.0, inherited), own, tau=True)


def _exp(x: Inexact) -> Inexact:
    # exp2 forms round x log2(e) first; the subtraction that made x is x's own error.
    shift = x.error + (2.0 * x.arithmetic.u_acc * np.abs(x.value) if x.arithmetic.exp2 else 0.0)
    value = np.exp(x.value)
    inherited = np.where(np.isneginf(x.value), 0.0, value * np.expm1(shift))
    return x.computed(value, inherited, x.arithmetic.eta + x.arithmetic.u_mid, tau=True)


def _expm1(x: Inexact) -> Inexact:
    return _smooth(x, np.expm1, np.exp(x.value) * np.expm1(x.error))


def _log(x: Inexact) -> Inexact:
    return _smooth(x, np.log, -np.log1p(-np.minimum(x.error / np.abs(x.value), 1.0)))


def _log1p(x: Inexact) -> Inexact:
    return _smooth(x, np.log1p, -np.log1p(-np.minimum(x.error / np.abs(1 + x.value), 1.0)))


def _sqrt(x: Inexact) -> Inexact:
    root = np.sqrt(np.maximum(x.value, 0))
    inherited = np.minimum(np.sqrt(x.error), x.error / np.where(root > 0, root, np.nan))
    inherited = np.where(root > 0, inherited, np.sqrt(x.error))
    # A square root may be taken as x times a reciprocal root.
    return x.computed(np.sqrt(x.value), inherited, 3.0 * x.unit, tau=False)


def _tanh(x: Inexact) -> Inexact:
    nearest = np.minimum(np.maximum(np.abs(x.value) - x.error, 0.0), 300.0)
    return _smooth(x, np.tanh, x.error / np.cosh(nearest.astype(np.float64)) ** 2)


def _wave(function: Callable[[Array], Array]) -> Callable[[Inexact], Inexact]:
    def rule(x: Inexact) -> Inexact:
        value = function(x.value)
        return x.computed(value, x.error, x.arithmetic.eta + x.arithmetic.u_mid, tau=True)

    return rule


def _extreme(choose: Any) -> Callable[[Inexact, Inexact], Inexact]:
    def rule(x: Inexact, y: Inexact) -> Inexact:
        return Inexact(choose(x.value, y.value), np.maximum(x.error, y.error), x.arithmetic)

    return rule


def _comparison(compare: Any) -> Callable[..., Any]:
    def rule(x: Any, y: Any, **_: Any) -> Any:
        x, y = (v if isinstance(v, Inexact) else Inexact(v, 0.0, Arithmetic()) for v in (x, y))
        value = compare(x.value, y.value)
        slack = x.error + y.error
        sure = (np.abs(x.value - y.value) > slack) | (slack == 0)
        return value if sure.all() else Uncertain(value, sure)

    return rule


def _power(x: Inexact, n: Any) -> Inexact:
    exponent = float(n.value) if isinstance(n, Inexact) else float(n)
    if exponent not in (2.0, 3.0):
        raise TypeError(f"no error rule for the power {exponent}")
    square = _multiply(x, x)
    return square if exponent == 2.0 else _multiply(square, x)


# Rules for sums and products of arrays -------------------------------------------------------------


def _terms(shape: tuple[int, ...], axis: Any) -> int:
    axes = range(len(shape)) if axis is None else (axis,) if isinstance(axis, int) else axis
    return math.prod(shape[a] for a in axes)


def _sum(x: Inexact, axis: Any = None, keepdims: bool = False, **_: Any) -> Inexact:
    value = np.sum(x.value, axis=axis, keepdims=keepdims)
    inherited = np.sum(x.error, axis=axis, keepdims=keepdims)
    reach = np.sum(x.reach, axis=axis, keepdims=keepdims)
    return _summed(x, value, inherited, reach, _terms(x.shape, axis) - 1)


def _summed(x: Inexact, value: Array, inherited: Array, reach: Array, roundings: int) -> Inexact:
    """A sum of terms whose magnitudes sum to ``reach``; what is stored in between is rounded too."""
    largest = min(FORMATS[a].max for a in (x.arithmetic.accumulate, x.arithmetic.intermediate))
    own = gamma(max(roundings, 0), x.arithmetic.u_acc) * reach
    own = np.where(reach == 0, 0.0, own + (x.arithmetic.u_mid * reach if roundings > 0 else 0.0))
    error = np.where((reach >= largest) & np.isfinite(value), np.inf, inherited + own)
    return Inexact(value, error, x.arithmetic)


def _mean(x: Inexact, axis: Any = None, keepdims: bool = False, **_: Any) -> Inexact:
    count = np.asarray(float(_terms(x.shape, axis)))
    return _divide(_sum(x, axis, keepdims), Inexact(count, 0.0, x.arithmetic))


def _bilinear(
    apply: Callable[[Array, Array], Array], x: Inexact, y: Inexact, terms: int
) -> Inexact:
    """A sum of ``terms`` products x_i y_i, by the function that sums them."""
    value = apply(x.value, y.value)
    a, b = np.abs(x.value).astype(np.float64), np.abs(y.value).astype(np.float64)
    reach = apply(a, b)
    inherited = np.zeros_like(reach)
    if x.error.any():
        inherited = inherited + apply(x.error, b + y.error)
    if y.error.any():
        inherited = inherited + apply(a, y.error)
    reach = reach + inherited
    result = _summed(x, value, inherited, reach, terms)
    under = np.where(reach > 0, terms * x.arithmetic.tau_acc, 0.0)
    return Inexact(
        value, np.where(np.isnan(value), result.error, result.error + under), x.arithmetic
    )


def _matmul(x: Inexact, y: Inexact) -> Inexact:
    return _bilinear(np.matmul, x, y, x.shape[-1])


def _einsum(subscripts: str, *operands: Any, **_: Any) -> Inexact:
    if len(operands) != 2:
        raise TypeError("einsum of Inexact arrays takes two operands: multiply them in turn")
    arithmetic = next(o.arithmetic for o in operands if isinstance(o, Inexact))
    x, y = (_inexact(o, arithmetic) for o in operands)
    left, _, out = subscripts.replace(" ", "").partition("->")
    sizes: dict[str, int] = {}
    for letters, operand in zip(left.split(","), (x, y), strict=True):
        named = letters.replace("...", "")
        sizes |= dict(zip(named, operand.shape[operand.ndim - len(named) :], strict=True))
        if "..." in letters and not letters.startswith("..."):
            raise TypeError(f"einsum {subscripts!r}: an ellipsis must come first")
    terms = math.prod(n for letter, n in sizes.items() if letter not in out)
    return _bilinear(lambda a, b: np.einsum(subscripts, a, b), x, y, terms)


def _tensordot(x: Any, y: Any, axes: Any = 2) -> Inexact:
    arithmetic = (x if isinstance(x, Inexact) else y).arithmetic
    x, y = _inexact(x, arithmetic), _inexact(y, arithmetic)
    over = range(x.ndim - axes, x.ndim) if isinstance(axes, int) else np.ravel(axes[0])
    terms = math.prod(x.shape[int(a)] for a in over)
    return _bilinear(lambda a, b: np.tensordot(a, b, axes=axes), x, y, terms)


def _max(x: Inexact, axis: Any = None, keepdims: bool = False, **kwargs: Any) -> Inexact:
    value = np.max(x.value, axis=axis, keepdims=keepdims, **kwargs)
    seen = {n: v for n, v in kwargs.items() if n == "where"}
    error = np.max(x.error, axis=axis, keepdims=keepdims, initial=0.0, **seen)
    return Inexact(value, error, x.arithmetic)


def _where(condition: Any, yes: Any, no: Any) -> Any:
    arithmetic = next((v.arithmetic for v in (yes, no) if isinstance(v, Inexact)), None)
    if arithmetic is None:
        arithmetic = Arithmetic()
    a, b = (_inexact(v, arithmetic) for v in (yes, no))
    if not isinstance(condition, Uncertain):
        return Inexact(
            np.where(condition, a.value, b.value), np.where(condition, a.error, b.error), arithmetic
        )
    apart = np.abs(a.value - b.value).astype(np.float64)
    either = np.maximum(np.where(condition.value, a.error, b.error), apart)
    other = np.where(condition.value, b.error, a.error) + apart
    error = np.where(
        condition.sure, np.where(condition.value, a.error, b.error), np.maximum(either, other)
    )
    return Inexact(np.where(condition.value, a.value, b.value), error, arithmetic)


# What numpy offers, and which rule it has ----------------------------------------------------------


def _mover(function: Any) -> Callable[..., Any]:
    """Moves values and errors alike; a list of arrays may be given or come out."""

    @functools.wraps(function)
    def rule(first: Any, *args: Any, **kwargs: Any) -> Any:
        several = isinstance(first, Sequence) and not isinstance(first, Inexact)
        parts = list(first) if several else [first, *args]
        arithmetic = next(p.arithmetic for p in parts if isinstance(p, Inexact))
        rest = args if several else ()

        def move(side: Callable[[Any], Any]) -> Any:
            if several:
                return function([side(_inexact(p, arithmetic)) for p in parts], *rest, **kwargs)
            plain = [side(p) if isinstance(p, Inexact) else p for p in parts]
            return function(*plain, **kwargs)

        values, errors = move(lambda p: p.value), move(lambda p: p.error)
        if isinstance(values, list | tuple):
            return [Inexact(v, e, arithmetic) for v, e in zip(values, errors, strict=True)]
        return Inexact(values, errors, arithmetic)

    return rule


def _full_like(number: float) -> Callable[..., Inexact]:
    def rule(x: Inexact, *_: Any, **__: Any) -> Inexact:
        return Inexact(np.full_like(x.value, number), 0.0, x.arithmetic)

    return rule


_UFUNCS: dict[Any, Callable[..., Any]] = {
    np.add: _add,
    np.subtract: functools.partial(_add, sign=-1),
    np.multiply: _multiply,
    np.divide: _divide,
    np.negative: lambda x: Inexact(-x.value, x.error, x.arithmetic),
    np.positive: lambda x: x,
    np.absolute: lambda x: Inexact(np.abs(x.value), x.error, x.arithmetic),
    np.square: lambda x: _multiply(x, x),
    np.power: _power,
    np.exp: _exp,
    np.expm1: _expm1,
    np.log: _log,
    np.log1p: _log1p,
    np.sqrt: _sqrt,
    np.tanh: _tanh,
    np.sin: _wave(np.sin),
    np.cos: _wave(np.cos),
    np.maximum: _extreme(np.maximum),
    np.minimum: _extreme(np.minimum),
    np.matmul: _matmul,
    np.isfinite: lambda x: np.isfinite(x.value),
    np.isnan: lambda x: np.isnan(x.value),
    **{
        c: _comparison(c)
        for c in (np.less, np.less_equal, np.greater, np.greater_equal, np.equal, np.not_equal)
    },
}  # fmt: skip

_MOVERS = (
    np.broadcast_to, np.concatenate, np.copy, np.expand_dims, np.flip, np.moveaxis, np.pad,
    np.ravel, np.repeat, np.reshape, np.roll, np.split, np.squeeze, np.stack, np.swapaxes, np.take,
    np.take_along_axis, np.tile, np.transpose, sliding_window_view,
)  # fmt: skip

_FUNCTIONS: dict[Any, Callable[..., Any]] = {
    np.sum: _sum,
    np.mean: _mean,
    np.max: _max,
    np.amax: _max,
    np.where: _where,
    np.einsum: _einsum,
    np.tensordot: _tensordot,
    np.zeros_like: _full_like(0.0),
    np.ones_like: _full_like(1.0),
    np.empty_like: _full_like(0.0),
    np.shape: lambda x: x.shape,
    np.ndim: lambda x: x.ndim,
    np.size: lambda x: x.size,
    **{function: _mover(function) for function in _MOVERS},
}


# The bound -----------------------------------------------------------------------------------------


def stored(x: Inexact) -> Array:
    """Bound on the error of ``x`` once it is stored as a result: one more rounding.

    What has no error is an input, moved or selected: it is representable, and stays exact.
    """
    arithmetic = x.arithmetic
    size = x.reach
    error = x.error + arithmetic.u_store * size + arithmetic.tau_store
    error = np.where(size + error >= FORMATS[arithmetic.storage].max, np.inf, error)
    return np.where(x.error == 0, 0.0, error * RUNNING_SLACK)


def running_bound(
    function: Callable[[Mapping[Name, Any]], Mapping[str, Any]],
    arrays: Mapping[Name, Array],
    arithmetic: Arithmetic,
) -> dict[str, Array]:
    """Bounds on |computed - exact| for every result of ``function(arrays)``, in the results' shapes.

    Floats are taken as exact inputs; integers and truth values are handed on as they are.

    >>> both = {"x": np.ones(3), "y": np.ones(3)}
    >>> bound = running_bound(lambda a: {"dot": (a["x"] * a["y"]).sum()}, both, Arithmetic())
    >>> bool(3 * 2.0**-24 < bound["dot"] < 12 * 2.0**-24)
    True
    """
    inexact = {
        n: Inexact(np.array(a), 0.0, arithmetic) if np.issubdtype(a.dtype, np.floating) else a
        for n, a in arrays.items()
    }
    with np.errstate(all="ignore"):
        results = function(inexact)
        return {
            n: stored(x) if isinstance(x, Inexact) else np.zeros(np.shape(x))
            for n, x in results.items()
        }


def widest(*bounds: Mapping[str, Array]) -> dict[str, Array]:
    """For each result the larger of several bounds: sound for whichever form was evaluated.

    >>> widest({"y": np.array([1.0])}, {"y": np.array([2.0])})["y"].tolist()
    [2.0]
    """
    return {n: functools.reduce(np.maximum, [b[n] for b in bounds]) for n in bounds[0]}
