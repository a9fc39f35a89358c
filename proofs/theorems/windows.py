"""Windows of any sizes: which ones fit, what they leave out, in what order a grid is read."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod
from typing import Any

import numpy as np
import z3

from assay.proofs.mutants import mutant
from assay.proofs.obligation import Body, Case, Obligation, Premise, Query, Twin
from assay.proofs.scalars.integers import Integer, euclid, whole
from assay.spec.models.vit import ViTConfig
from assay.spec.spatial.convolution import convolution, convolution_backward
from assay.spec.spatial.patches import patch_embedding
from assay.spec.spatial.windows import Windows, extent, row_major, same_padding

Extent = Callable[..., Any]
Place = Callable[[Sequence[Any], Sequence[Any]], Any]
N, K, S, P, D, J = (whole(name) for name in ("n", "k", "s", "p", "d", "j"))
SIZES = Premise(
    r"n, p \ge 0;\; k, s, d \ge 1",
    z3.And(N.term >= 0, P.term >= 0, K.term >= 1, S.term >= 1, D.term >= 1),
)
WITNESS = {"n": 7, "k": 3, "s": 2, "p": 1, "d": 1, "j": 2}


def windows_that_fit(extent: Extent) -> Iterator[Query]:
    """j < m iff window j ends inside the padded input; m is never negative."""
    m = extent(N, K, S, P, D).term
    fits = (S * J + D * (K - 1)).term < (N + 2 * P).term
    index = Premise(r"j \ge 0", J.term >= 0)
    known = (SIZES, index, *euclid(m))
    yield Query("each of them fits", z3.Implies(J.term < m, fits), known, WITNESS)
    yield Query("each that fits is one", z3.Implies(fits, J.term < m), known, WITNESS)
    yield Query("their number is no debt", m >= 0, known, WITNESS)


def same_extent(padding: Callable[[Any], Any], extent: Extent = extent) -> Iterator[Query]:
    """Stride 1, kernel 2 r + 1 and padding r keep every extent; no other padding does."""
    r = whole("r")
    kernel, pad = padding(r)
    sizes = Premise(r"n, r \ge 0", z3.And(N.term >= 0, r.term >= 0))
    kept = extent(N, kernel, 1, pad).term == N.term
    yield Query("every extent is kept", kept, (sizes,), {"n": 5, "r": 2})
    other = Premise(r"k \ne 2 p + 1", (K - 2 * P).term != 1)
    changed = extent(N, K, 1, P).term != N.term
    sizes = z3.And(N.term >= K.term, P.term >= 0, K.term >= 1)
    inside = Premise(r"n \ge k,\; p \ge 0,\; k \ge 1", sizes)
    yield Query("any other kernel changes it", changed, (inside, other), {"n": 5, "k": 2, "p": 0})


def remainder(extent: Extent) -> Iterator[Query]:
    """The windows end where fewer than s inputs are left, and none reads beyond that."""
    m = extent(N, K, S, P, D).term
    known = (SIZES, Premise(r"m \ge 1", m >= 1), *euclid(m))
    last = S.term * (m - 1) + (D * (K - 1)).term
    rest = (N + 2 * P).term - (last + 1)
    yield Query("fewer than s are left", z3.And(rest >= 0, rest < S.term), known, WITNESS)
    i, t = z3.Ints("i t")
    among = Premise(r"0 \le i < m,\; 0 \le t < k", z3.And(i >= 0, i < m, t >= 0, t < K.term))
    inside = S.term * i + D.term * t <= last
    yield Query("none reads beyond", inside, (*known, among), {**WITNESS, "i": 1, "t": 0})


def patch_grid(extent: Extent) -> Iterator[Query]:
    """Patches side by side: m k <= n < (m + 1) k, so that n - m k < k inputs are dropped."""
    m = extent(N, K, K).term
    sizes = Premise(r"n \ge 0,\; k \ge 1", z3.And(N.term >= 0, K.term >= 1))
    held = z3.And(m >= 0, m * K.term <= N.term, N.term < (m + 1) * K.term)
    yield Query("m = n // k", held, (sizes, *euclid(m)), {"n": 7, "k": 3})


def model_grid(tokens: Callable[[Any], Any]) -> Iterator[Query]:
    """The grid of a vision transformer is that of its convolution; a class token is one more."""
    axes = [[whole(f"{name}{a}") for a in range(2)] for name in ("n", "k", "s", "p")]
    spatial, kernel, stride, padding = (tuple(x) for x in axes)
    fields = {"spatial": spatial, "kernel": kernel, "stride": stride, "padding": padding}
    mean, own = (ViTConfig.unchecked(**fields, pooling=pooling) for pooling in ("mean", "cls"))
    witness = {f"{c}{a}": v for a in range(2) for c, v in zip("nksp", (7, 3, 2, 1), strict=True)}
    every = []
    for a, (m, n, k, s, p) in enumerate(zip(mean.grid, *axes, strict=True)):
        length = extent(n, k, s, p).term
        sizes = z3.And(
            n.term >= 0, p.term >= 0, k.term >= 1, s.term >= 1, (n + 2 * p - k).term >= 0
        )
        fits = Premise(r"n, p \ge 0;\; k, s \ge 1;\; k \le n + 2 p", sizes)
        every.append(fits)
        yield Query(f"axis {a}", m.term == length, (fits, *euclid(length, m.term)), witness)
    count = mean.grid[0].term * mean.grid[1].term
    yield Query("tokens", tokens(mean).term == count, tuple(every), witness)
    yield Query("and the class token", tokens(own).term == count + 1, tuple(every), witness)


def flattened(place: Place, more: Sequence[int] = (3, 4)) -> Iterator[Query]:
    """Row-major positions lie in 0 .. product - 1, and two indices never share one.

    It is enough to see it of two axes, where the first stands for all axes before the last: a
    longer index is read as such a pair.
    """
    rows, columns = whole("n0"), whole("n1")
    one, two = ([whole(f"{c}{a}") for a in range(2)] for c in "ij")
    bounds = [
        z3.And(x.term >= 0, x.term < n.term)
        for index in (one, two)
        for x, n in zip(index, (rows, columns), strict=True)
    ]
    among = Premise(r"0 \le i_a, j_a < n_a", z3.And(*bounds))
    at, other = (place(index, (rows, columns)).term for index in (one, two))
    held = {"n0": 3, "n1": 4, "i0": 1, "i1": 2, "j0": 1, "j1": 2}
    count = rows.term * columns.term
    yield Query("in range", z3.And(at >= 0, at < count), (among,), held)
    apart = (two[0] - one[0]).term
    gap = z3.And(
        z3.Implies(apart >= 1, apart * columns.term >= columns.term),
        z3.Implies(apart <= -1, apart * columns.term <= -columns.term),
    )
    yield Query("rows that differ are a row apart", gap, (among,), held)
    same = z3.And(*(x.term == y.term for x, y in zip(one, two, strict=True)))
    shared = Premise(r"r(i) = r(j)", at == other)
    yield Query("once", same, (among, shared, Premise("the gap", gap, "lemma")), held)
    for axes in more:
        index, sizes = ([whole(f"{c}{a}") for a in range(axes)] for c in "in")
        before = place(index[:-1], sizes[:-1])
        pair = place((before, index[-1]), (prod(sizes[:-1], start=Integer(1)), sizes[-1]))
        yield Query(f"{axes} axes as two", place(index, sizes).term == pair.term)


def extents_listed(extent: Extent) -> Iterator[Case]:
    """``extent`` and the outputs of a convolution against a count of the windows that fit."""
    for n, k, s, p, d in itertools.product(range(8), range(1, 5), range(1, 4), range(3), (1, 2)):
        fits = sum(s * i + d * (k - 1) < n + 2 * p for i in range(n + 2 * p + 1))
        x, w = np.zeros((1, 1, n)), np.zeros((1, 1, k))
        outputs = convolution(x, w, stride=s, padding=p, dilation=d).shape[2]
        yield Case(
            f"n={n}, k={k}, s={s}, p={p}, d={d}: {fits} fit",
            fits == outputs == extent(n, k, s, p, d),
        )


def _read(n: int, k: int, s: int, p: int, d: int) -> set[int]:
    """Inputs that some window which fits reads."""
    starts = [i for i in range(n + 2 * p) if s * i + d * (k - 1) < n + 2 * p]
    return {s * i + d * t - p for i in starts for t in range(k)} & set(range(n))


def _read_without_holes(n: int, k: int, s: int, p: int, d: int) -> set[int]:
    return _read(n, k, s, p, d) | _read(n, d * (k - 1) + 1, s, p, 1)


def dropped(read: Callable[..., set[int]]) -> Iterator[Case]:
    """An input that no window reads changes nothing and gets gradient 0; every other one counts."""
    for n, k, s, p, d in itertools.product(range(1, 7), range(1, 4), range(1, 4), range(2), (1, 2)):
        options: dict[str, Any] = {"stride": s, "padding": p, "dilation": d}
        x = np.arange(1, n + 1).astype(object).reshape(1, 1, n)
        w = np.arange(1, k + 1).astype(object).reshape(1, 1, k)
        y = convolution(x, w, **options)
        slope = convolution_backward(x, w, np.full(y.shape, 1, dtype=object), **options).x[0, 0]
        seen = read(n, k, s, p, d)
        hidden = [a for a in range(n) if a not in seen]
        x[0, 0, hidden] = 10**9
        same = bool((convolution(x, w, **options) == y).all())
        right = all((slope[a] > 0) == (a in seen) for a in range(n))
        yield Case(f"n={n}, k={k}, s={s}, p={p}, d={d}: unread {hidden}", same and right)


GRIDS = [g for axes in (1, 2, 3) for g in itertools.product(range(1, 4), repeat=axes)]


def patches_listed(place: Place, first: int) -> Iterator[Case]:
    """Token ``first`` + row_major(i) is patch i of the grid; row 0 is the class token, if any."""
    for grid, own in itertools.product(GRIDS, (False, True)):
        sizes = tuple(2 * m for m in grid)
        x = np.arange(prod(sizes)).astype(object).reshape(1, 1, *sizes)
        weight = np.array([3**t for t in range(2 ** len(grid))], dtype=object).reshape(
            1, 1, *(2 for _ in grid)
        )
        token = np.array([[-1]], dtype=object) if own else None
        tokens = patch_embedding(x, weight, None, token)[0, :, 0]
        whole_grid = convolution(x, weight, stride=2)[0, 0]
        behind = first if own else 0
        places = {i: behind + int(place(i, grid)) for i in np.ndindex(*grid)}
        order = all(tokens[min(r, len(tokens) - 1)] == whole_grid[i] for i, r in places.items())
        length = len(tokens) == prod(grid) + own and (not own or tokens[0] == -1)
        yield Case(f"grid {grid}, class token {own}", order and length)


def windows_over_axes(kernel: int) -> Iterator[Case]:
    """Each axis has its own windows: the extents of a grid are those of its axes."""
    for sizes in itertools.product(range(1, 5), repeat=3):
        windows = Windows.over(sizes, (1, 2, kernel), (1, 2, 1), (0, 1, 1))
        want = tuple(
            sum(s * i + k <= n + 2 * p for i in range(n + 2 * p + 1))
            for n, k, s, p in zip(sizes, (1, 2, 3), (1, 2, 1), (0, 1, 1), strict=True)
        )
        yield Case(f"{sizes}: {windows.extents}", windows.extents == want)


def column_major(index: Sequence[Any], sizes: Sequence[Any]) -> Any:
    """The other order."""
    return row_major(index[::-1], sizes[::-1])


BACKWARDS = mutant(row_major, "place * n + i", "place * n - i")
TRUNCATED = mutant(
    extent,
    "select(at_most(np.asarray(span), np.asarray(room)), (room - span) // stride + 1, 0)[()]",
    "select(at_most(np.asarray(span), np.asarray(room)), (room - span) // stride, 0)[()] + 1",
)
ROUNDED_UP = mutant(
    extent, "(room - span) // stride + 1", "(room - span + stride - 1) // stride + 1"
)


def _proved(
    claim: str, variant: str, statement: str, generality: str, body: Body, twin: Twin
) -> Obligation:
    return Obligation(
        f"{claim}/{variant}", claim, statement, generality, "proved", "z3", body, twin
    )


def _listed(
    claim: str, variant: str, statement: str, generality: str, body: Body, twin: Twin
) -> Obligation:
    return Obligation(
        f"{claim}/{variant}", claim, statement, generality, "exhaustive", "enumeration", body, twin
    )


OBLIGATIONS: tuple[Obligation, ...] = (
    _proved(
        "convolution.extent",
        "integers",
        r"0 \le j < m \Leftrightarrow s\, j + d (k - 1) < n + 2 p",
        "any n, p >= 0 and k, s, d >= 1",
        partial(windows_that_fit, extent),
        Twin(
            "where none fits, a truncated subtraction counts one",
            partial(windows_that_fit, TRUNCATED),
        ),
    ),
    _listed(
        "convolution.extent",
        "small",
        r"m = |\{i : s\, i + d (k - 1) < n + 2 p\}|",
        "extent and convolution, n in 0..7, k in 1..4, s in 1..3, p in 0..2, d in 1..2",
        partial(extents_listed, extent),
        Twin(
            "where none fits, a truncated subtraction counts one",
            partial(extents_listed, TRUNCATED),
        ),
    ),
    _listed(
        "convolution.extent",
        "axes",
        r"m_a = \operatorname{extent}(n_a, k_a, s_a, p_a)",
        "Windows over three axes of 1..4 with different kernels, strides and paddings",
        partial(windows_over_axes, 3),
        Twin("the kernel of one axis is longer", partial(windows_over_axes, 4)),
    ),
    _proved(
        "convolution.extent",
        "patch-grid",
        r"m k \le n < (m + 1) k,\quad s = k,\; p = 0",
        "any n >= 0 and k >= 1",
        partial(patch_grid, extent),
        Twin("the remainder makes a patch", partial(patch_grid, ROUNDED_UP)),
    ),
    _proved(
        "convolution.class_token_row",
        "length",
        r"T = \prod_a m_a + [\text{class token}]",
        "ViTConfig on two axes, any n, p >= 0, k, s >= 1 with k <= n + 2 p",
        partial(model_grid, lambda config: config.context),
        Twin("the class token is not counted", partial(model_grid, lambda config: config.patches)),
    ),
    _proved(
        "convolution.same_padding",
        "integers",
        r"\operatorname{extent}(n, k, 1, p) = n \Leftrightarrow k = 2 p + 1",
        "any n, r >= 0; the converse for any 1 <= k <= n",
        partial(same_extent, same_padding),
        Twin(
            "kernel 2 r", partial(same_extent, mutant(same_padding, "2 * radius + 1", "2 * radius"))
        ),
    ),
    _proved(
        "convolution.remainder_dropped",
        "integers",
        r"0 \le n + 2 p - (s (m - 1) + d (k - 1) + 1) < s",
        "any n, p >= 0 and k, s, d >= 1 with at least one window",
        partial(remainder, extent),
        Twin("the last window may be cut off", partial(remainder, ROUNDED_UP)),
    ),
    _listed(
        "convolution.remainder_dropped",
        "small",
        r"(\forall i, t\; s\, i + d\, t - p \ne a) \Leftrightarrow \bar x_a = 0",
        "convolution and gradient of whole numbers, n in 1..6, k, s in 1..3, p in 0..1, d in 1..2",
        partial(dropped, _read),
        Twin("dilated windows read all that they span", partial(dropped, _read_without_holes)),
    ),
    _proved(
        "convolution.patch_order",
        "integers",
        r"0 \le r(i) < \prod_a n_a,\quad r(i) = r(j) \Rightarrow i = j",
        "row_major on axes of any sizes: two, and every number of them taken two at a time (to 4)",
        partial(flattened, row_major),
        Twin("columns are counted backwards", partial(flattened, BACKWARDS, ())),
    ),
    _listed(
        "convolution.patch_order",
        "small",
        r"t_{r(i)} = y_i",
        "patch_embedding, every grid of one to three axes of 1..3, with and without a class token",
        partial(patches_listed, row_major, 1),
        Twin("column by column", partial(patches_listed, column_major, 1)),
    ),
    _listed(
        "convolution.class_token_row",
        "small",
        r"t_0 = c,\quad t_{1 + r(i)} = y_i",
        "patch_embedding, every grid of one to three axes of 1..3",
        partial(patches_listed, row_major, 1),
        Twin("the class token is appended", partial(patches_listed, row_major, 0)),
    ),
)
