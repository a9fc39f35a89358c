"""Bands of frequencies, any sizes: how many are kept, when all, and when two share an index."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from math import prod
from typing import Any

import numpy as np
import z3

from assay.proofs.induction import by_induction, folds_of
from assay.proofs.mutants import mutant
from assay.proofs.obligation import Body, Case, Obligation, Premise, Query, Twin
from assay.proofs.scalars.integers import Integer, whole
from assay.proofs.scalars.stretches import Axis, Stretch
from assay.spec.models.fno import FNOConfig, dead_scalars
from assay.spec.spectral.bands import band_mask, keep
from assay.spec.spectral.rfft_conv import half_spectrum, real_bins, spectral_conv_rfft

Keep = Callable[..., Any]
N, M, K, F, G = (whole(name) for name in ("n", "m", "k", "f", "g"))
SIZES = Premise(r"n \ge 1,\; m \ge 0", z3.And(N.term >= 1, M.term >= 0))
INSIDE = Premise(r"0 \le k < n", z3.And(K.term >= 0, K.term < N.term))
WITNESS = {"n": 8, "m": 2, "k": 1}


def _min(a: z3.ArithRef, b: z3.ArithRef) -> z3.ArithRef:
    return z3.If(a <= b, a, b)


def cardinality(kept: Keep) -> Iterator[Query]:
    """The number kept among the first k indices has a closed form: min(2 m, n) at k = n."""
    axis = Axis("", Integer)
    n, m = axis.length, M.term

    def counts(j: Any) -> Any:
        return kept(Integer(n), M, Integer(j)).select(Integer(1), Integer(0))

    count = axis.sum_of(Stretch(axis, counts))
    sizes = Premise(r"m \ge 0", m >= 0)
    held = {"n": 8, "m": 2}

    def closed(k: Any) -> z3.BoolRef:
        high = -_min(-(n - m), -m)  # where the upper part begins, beyond the lower one
        return count.at(k) == _min(k, m) + z3.If(k > high, k - high, 0)

    start = z3.IntVal(0)
    queries, lemma = by_induction(
        "kept so far",
        axis,
        lambda k: closed(start if isinstance(k, int) else k),
        premises=[sizes],
        witness=held,
    )
    yield from queries
    goal = count.at(n) == _min(2 * m, n)
    yield Query("in all", goal, (sizes, lemma), held, folds_of(axis))


def cardinality_of(kept: Keep, n: int) -> Iterator[Query]:
    """The same for one n and any m."""
    terms = [kept(Integer(n), M, Integer(k)).select(Integer(1), Integer(0)).term for k in range(n)]
    m = Premise(r"m \ge 0", M.term >= 0)
    yield Query(f"n = {n}", z3.Sum(*terms) == _min(2 * M.term, z3.IntVal(n)), (m,), {"m": 2})


def covers(kept: Keep) -> Iterator[Query]:
    """Every index is kept iff 2 m >= n."""
    wide = Premise(r"2 m \ge n", 2 * M.term >= N.term)
    yield Query("2 m >= n: all", kept(N, M, K).term, (SIZES, wide), {"n": 3, "m": 2, "k": 1})
    narrow = Premise(r"2 m < n", 2 * M.term < N.term)
    hole = z3.And(M.term < N.term, z3.Not(kept(N, M, M).term))
    yield Query("else m itself is missing", hole, (SIZES, narrow), WITNESS)


def frequencies(kept: Keep) -> Iterator[Query]:
    """Index k is kept iff k or k - n is among -m .. m - 1; two of these are one iff 2 m > n."""

    def among(f: Any) -> z3.BoolRef:
        return z3.And(f.term >= -M.term, f.term < M.term)

    either = z3.Or(among(K), among(K - N))
    yield Query("which", kept(N, M, K).term == either, (SIZES, INSIDE), WITNESS)
    t = z3.Int("t")
    alike = Premise(
        r"f - g = n t,\; f \ne g",
        z3.And((F - G).term == N.term * t, F.term != G.term),
    )
    both = Premise(r"-m \le f, g < m", z3.And(among(F), among(G)))
    wrapped = {"n": 3, "m": 2, "f": 1, "g": -2, "t": 1}
    yield Query("two share an index: 2 m > n", 2 * M.term > N.term, (SIZES, both, alike), wrapped)
    wide = Premise(r"2 m > n", 2 * M.term > N.term)
    first, second = Integer(0) - M, N - M
    met = z3.And(among(first), among(second), (second - first).term == N.term)
    yield Query("2 m > n: -m and n - m share one", met, (SIZES, wide), {"n": 3, "m": 2})
    kept_there = kept(N, M, second).term
    yield Query("and it is kept", kept_there, (SIZES, wide), {"n": 3, "m": 2})


def masks(mask: Callable[..., Any], dead: Callable[[FNOConfig], int]) -> Iterator[Case]:
    """A grid keeps the product of min(2 m, n), and the weights of the others are dead."""
    grids = [g for axes in (1, 2) for g in itertools.product(range(1, 6), repeat=axes)]
    for spatial in (*grids, (2, 3, 4), (3, 3, 3)):
        for m in itertools.product(range(4), repeat=len(spatial)):
            kept = int(mask(spatial, m).sum())
            want = prod(min(2 * a, n) for a, n in zip(m, spatial, strict=True))
            config = FNOConfig(spatial=spatial, modes=m, width=3, layers=2)
            lost = 2 * 2 * (prod(spatial) - kept) * 9
            yield Case(f"n={spatial}, m={m}: {kept} kept", kept == want and dead(config) == lost)


def half_bins(most: Callable[[int], int]) -> Iterator[Case]:
    """n real points have n // 2 + 1 bins, k and n - k being one; two of them at most are real."""
    for n in range(1, 17):
        x = np.arange(n, dtype=np.float64).reshape(1, n, 1)
        pairs = {min(k, n - k) for k in range(n)}
        real = [k for k in range(most(n)) if 2 * k % n == 0]
        found = np.flatnonzero(real_bins(n, most(n))).tolist()
        right = len(pairs) == most(n) == len(half_spectrum(x, most(n)).re) and found == real
        yield Case(f"n={n}: {most(n)} bins, real {found}", right and _refused(x, most(n)))
        for m in range(most(n) + 1):
            dead = dead_scalars(FNOConfig(spatial=(n,), modes=(m,), spectrum="rfft", width=2))
            yield Case(f"n={n}, m={m}: {dead} dead", dead == 4 * sum(k < m for k in real))


def _refused(x: np.ndarray, most: int) -> bool:
    """Whether ``most`` bins are taken and one more is not."""
    spectral_conv_rfft(x, *[np.zeros((most, 1, 1))] * 2)
    try:
        spectral_conv_rfft(x, *[np.zeros((most + 1, 1, 1))] * 2)
    except ValueError:
        return True
    return False


CLOSED = mutant(keep, "k < modes", "k <= modes")
ONE_SIDED = mutant(keep, "(k < modes) | (n - modes <= k)", "k < modes")


def _proved(variant: str, statement: str, generality: str, body: Body, twin: Twin) -> Obligation:
    claim = "spectral.band"
    return Obligation(
        f"{claim}/{variant}", claim, statement, generality, "proved", "z3", body, twin
    )


OBLIGATIONS: tuple[Obligation, ...] = (
    _proved(
        "cardinality",
        r"|\{k < n : k < m \lor n - m \le k\}| = \min(2 m, n)",
        "any n >= 0 and m >= 0, by induction over the indices",
        partial(cardinality, keep),
        Twin("frequency +m is kept as well", partial(cardinality_of, CLOSED, 5)),
    ),
    _proved(
        "covers",
        r"(\forall k < n\; \operatorname{keep}(k)) \Leftrightarrow 2 m \ge n",
        "any n >= 1 and m >= 0",
        partial(covers, keep),
        Twin("negative frequencies are forgotten", partial(covers, ONE_SIDED)),
    ),
    _proved(
        "meet",
        r"(\exists f \ne g \in [-m, m)\; f \equiv g \bmod n) \Leftrightarrow 2 m > n",
        "any n >= 1 and m >= 0",
        partial(frequencies, keep),
        Twin("frequency +m is kept as well", partial(frequencies, CLOSED)),
    ),
    Obligation(
        "spectral.band/small",
        "spectral.band",
        r"|\text{kept}| = \prod_a \min(2 m_a, n_a)",
        "band_mask and dead_scalars, grids of one and two axes of 1..5 and two of three, m in 0..3",
        "exhaustive",
        "enumeration",
        partial(masks, band_mask, dead_scalars),
        Twin(
            "2 m are kept of every axis",
            partial(masks, band_mask, mutant(dead_scalars, "min(2 * m, n)", "2 * m")),
        ),
    ),
    Obligation(
        "spectral.half_bins/small",
        "spectral.half_bins",
        r"|\{\{k, n - k\}\}| = \lfloor n / 2 \rfloor + 1",
        "half_spectrum, real_bins and dead_scalars, n in 1..16 and every number of bins",
        "exhaustive",
        "enumeration",
        partial(half_bins, lambda n: n // 2 + 1),
        Twin("(n + 1) // 2 bins", partial(half_bins, lambda n: (n + 1) // 2)),
    ),
)
