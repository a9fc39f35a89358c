"""Running error analysis: |x^ - x| <= e for each number of a formula, by a rule for each operation.

The spec's own function is run on ``Inexact`` arrays, and what comes out holds the value and a bound
on the error of any sound floating-point evaluation of it. Source: N. Higham, Accuracy and Stability
of Numerical Algorithms, 2nd ed., sections 3.3 and 4.2. The rules are derived in ``spec/rounding/``:
``elementwise``, ``arrays``, ``conditions``. An input has no error, what is only moved keeps its
own, and where a value may overflow its bound is infinite.

An evaluation that is arranged differently (a product of sums expanded, a sum of squares less a
squared mean) is not covered by the rules alone: the op's own bound adds such forms, and says so.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping
from typing import Any, TypeVar

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from assay.spec.arithmetic import FORMATS, Arithmetic
from assay.spec.rounding import arrays, elementwise, recurrences, transforms
from assay.spec.rounding.carried import Carried
from assay.spec.rounding.conditions import Uncertain
from assay.spec.scalars import Array

Name = TypeVar("Name", bound=Hashable)

RUNNING_SLACK = 1.0 + 2.0**-8
"""The bound itself is calculated in float64, and the reference in little more than the precision
that is judged: their own errors are below this share of any bound.
"""


class Inexact(Carried, NDArrayOperatorsMixin):
    """An array that numpy and the spec calculate with, whose numbers carry their errors.

    >>> x = Inexact(np.array([1.0, 2.0]), 0.0, Arithmetic())
    >>> y = (x + x).sum()
    >>> float(y.value), bool(0 < float(y.error) < 1e-6)
    (6.0, True)
    """

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
        return self.moved(np.transpose)

    def __len__(self) -> int:
        return len(self.value)

    def __iter__(self) -> Any:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: Any) -> Inexact:
        return self.moved(lambda x: x[index])

    def __setitem__(self, index: Any, new: Any) -> None:
        new = self.like(new)
        self.value[index], self.error[index] = new.value, new.error

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        raise TypeError("an Inexact array is no array of floats: np.asarray would lose its errors")

    def reshape(self, *shape: Any) -> Inexact:
        """The same numbers in another shape."""
        return self.moved(lambda x: x.reshape(*shape))

    def swapaxes(self, a: int, b: int) -> Inexact:
        """Two axes exchanged."""
        return self.moved(lambda x: x.swapaxes(a, b))

    def transpose(self, *axes: Any) -> Inexact:
        """Axes in another order."""
        return self.moved(lambda x: x.transpose(*axes))

    def copy(self) -> Inexact:
        """Values and errors copied."""
        return self.moved(np.copy)

    def astype(self, dtype: Any, **_: Any) -> Inexact:
        """Unchanged: the format is the arithmetic's affair."""
        return self.copy()

    def sum(self, axis: Any = None, keepdims: bool = False) -> Any:
        """Sum along axes."""
        return arrays.total(self, axis, keepdims)

    def mean(self, axis: Any = None, keepdims: bool = False) -> Any:
        """Mean along axes."""
        return arrays.mean(self, axis, keepdims)

    def erf(self) -> Any:
        """Error function, which is no ufunc of numpy."""
        return elementwise.erf(self)

    def shut(self, gate: Any) -> Any:
        """``gate`` = sigmoid(self), by any of its forms: where exp(-x) overflows, 1 / (1 + exp(-x))
        is 0 in place of a tiny number, so that the gate's own size counts as its error.
        """
        if self.unit == 0:
            return gate
        low = self.value - self.error < 1.0 - np.log(self.largest)
        return gate.of(gate.value, gate.error + np.where(low, gate.reach, 0.0))

    def recurrence(self, factors: Any, start: Any) -> Any:
        """States of h_t = factors_t h_{t-1} + self_t, for every bracketing."""
        with np.errstate(all="ignore"):
            return recurrences.recurrence(self.like(factors), self, self.like(start))

    def decay(self, exponents: Any, start: Any) -> Any:
        """The same with factors exp(-exponents)."""
        with np.errstate(all="ignore"):
            return recurrences.decay(self.like(exponents), self, self.like(start))

    def into_factors(self, factors: Any, start: Any, read: Any, earlier: Any, slopes: Any) -> Any:
        """Gradients slopes_t earlier_t into the factors of a scan that adds self_t."""
        given = self.like(factors), self, self.like(start), self.like(read)
        with np.errstate(all="ignore"):
            return recurrences.into_factors(*given, earlier, slopes)

    def product_plus(self, *operands: Any) -> Any:
        """x matrix + parts for operands (x, matrix, *parts), of which this is one."""
        with np.errstate(all="ignore"):
            return arrays.matmul_plus(*map(self.like, operands))

    def fourier(self, im: Any, axes: tuple[int, ...], *, inverse: bool) -> Any:
        """Discrete Fourier transform of the pair (self, im), by matrices or fast."""
        im = None if im is None else self.like(im)
        return transforms.fourier(self, im, axes, inverse=inverse)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        folds = {np.add: arrays.total, np.maximum: arrays.largest}
        with np.errstate(all="ignore"):
            if method == "reduce" and ufunc in folds:
                named = {n: x for n, x in kwargs.items() if n not in ("dtype", "out")}
                return folds[ufunc](*inputs, **named)
            rule = arrays.matmul if ufunc is np.matmul else elementwise.UFUNCS.get(ufunc)
            if method != "__call__" or rule is None:
                raise TypeError(f"no error rule for numpy.{ufunc.__name__} ({method})")
            return rule(*(self._operand(x) for x in inputs), **kwargs)

    def _operand(self, x: Any) -> Any:
        """Truth values stay: multiplying by them is exact."""
        if isinstance(x, Carried | Uncertain) or getattr(x, "dtype", None) == np.dtype(bool):
            return x
        return self.like(x)

    def __array_function__(
        self, function: Any, types: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        rule = arrays.FUNCTIONS.get(function)
        if rule is None:
            raise TypeError(f"no error rule for numpy.{function.__name__}")
        with np.errstate(all="ignore"):
            return rule(*args, **kwargs)


def stored(x: Inexact) -> Array:
    """Bound on the error of ``x`` once it is stored as a result: one more rounding.

    What has no error is an input, moved or selected: it is representable, and stays exact.
    """
    arithmetic = x.arithmetic
    error = x.error + arithmetic.u_store * x.reach + arithmetic.tau_store
    error = np.where(x.reach + error >= FORMATS[arithmetic.storage].max, np.inf, error)
    return np.where(x.exact, 0.0, error * RUNNING_SLACK)


def running_bound(
    function: Callable[[Mapping[Name, Any]], Mapping[str, Any]],
    inputs: Mapping[Name, Array],
    arithmetic: Arithmetic,
) -> dict[str, Array]:
    """Bounds on |computed - exact| for every result of ``function(inputs)``, in their shapes.

    Floats are taken as exact inputs; integers and truth values are handed on as they are.

    >>> both = {"x": np.ones(3), "y": np.ones(3)}
    >>> bound = running_bound(lambda a: {"dot": (a["x"] * a["y"]).sum()}, both, Arithmetic())
    >>> bool(2 * 3 * 2.0**-24 < bound["dot"] < 12 * 2.0**-24)
    True
    """
    inexact = {
        n: Inexact(np.array(a), 0.0, arithmetic) if np.issubdtype(a.dtype, np.floating) else a
        for n, a in inputs.items()
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
