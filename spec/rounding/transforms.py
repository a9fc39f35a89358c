"""Error rule of the discrete Fourier transform, by matrices or fast.

Every output is a sum over the inputs of x times numbers of modulus 1. With S the sum of the moduli
of what goes in, complex numbers as pairs, and u = u_acc: whatever of the following is evaluated,
each part of each output is off by at most c S, where c is the largest of

    one matrix      N points make a sum of 2 N products, or of N for real data: d_N = gamma_2N +
                    sqrt(2) w, where each wave is off by w
    axis by axis    a step of n points is off by d_n in each part, by g_n = sqrt(2) d_n in modulus;
                    several steps compose: prod (1 + g_n) - 1
    fast            as many steps as n has prime factors p, of p terms, each with a multiplication
                    by a twiddle, and every path from an input to an output has modulus 1: f_p =
                    sqrt(2) (gamma_2p + gamma_2) + 4 u, and f_2 = u + sqrt(2) gamma_2 + 2 u since
                    a step of 2 adds and subtracts; twice that where n is even, for real data packed
                    as complex data of half the length

Waves of the matrix forms are cosines of an angle within half a turn that is rounded three times: w
= 3 u pi + eta. Twiddles of a fast transform are read from a table, good to a unit in the last
place, 2 u. Libraries transform lengths with a large prime factor by a chirp (Bluestein), whose
paths have larger moduli and no such bound; its error is small in the 2-norm, and was far within c S
wherever it was measured.

Sources: N. Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., lemma 3.5 (complex
products) and section 24.1, where the same paths are summed in the 2-norm. A partial result that is
stored adds u_mid to every step. Division by N, or by its root twice, adds four roundings. Errors of
what goes in are summed, for all waves have modulus 1 at most.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from assay.spec.arithmetic import Arithmetic, gamma
from assay.spec.rounding.carried import Carried
from assay.spec.spectral.dft import dft, idft


def prime_factors(n: int) -> list[int]:
    """Prime factors of n with their multiplicity.

    >>> prime_factors(12), prime_factors(1)
    ([2, 2, 3], [])
    """
    found, p = [], 2
    while n > 1:
        while n % p == 0:
            found.append(p)
            n //= p
        p += 1 if p * p <= n else n - p
    return found


def _fast_step(p: int, arithmetic: Arithmetic) -> float:
    u = arithmetic.u_acc
    twiddle = math.sqrt(2) * gamma(2, u) + 2 * u
    step = twiddle + (u if p == 2 else math.sqrt(2) * gamma(2 * p, u) + 2 * u)
    return float(step + math.sqrt(2) * arithmetic.u_mid)


def transform_error(sizes: Sequence[int], arithmetic: Arithmetic, *, real: bool = False) -> float:
    """The factor c for a grid of these sizes; ``real`` when what goes in is real.

    >>> bool(64 < transform_error([32], Arithmetic()) / 2.0**-24 < 128)
    True
    """
    wave = 3 * math.pi * arithmetic.u_acc + arithmetic.eta

    def dense(products: int) -> float:
        return float(gamma(products, arithmetic.u_acc) + math.sqrt(2) * (wave + arithmetic.u_mid))

    whole = dense((1 if real else 2) * math.prod(sizes))
    steps = [math.sqrt(2) * dense(2 * n) for n in sizes] if len(sizes) > 1 else []
    fast = [_fast_step(p, arithmetic) for n in sizes for p in prime_factors(n)]
    by_axis, fastest = (math.prod(1 + s for s in each) - 1 for each in (steps, fast))
    return max(whole, by_axis, (2 if any(n % 2 == 0 for n in sizes) else 1) * fastest)


def fourier(re: Carried, im: Carried | None, axes: tuple[int, ...], *, inverse: bool) -> Any:
    """Real and imaginary part of the transform, each with its error."""
    parts = [re] if im is None else [re, im]
    values = (idft if inverse else dft)(re.value, None if im is None else im.value, axes)
    sizes = [re.value.shape[a] for a in axes]
    count = math.prod(sizes)

    def summed(each: list[Any]) -> Any:
        # Squares of what is below 1e-162 would be 0.
        size = reduce(np.hypot, (np.abs(x.astype(np.float64)) for x in each))
        return np.broadcast_to(np.sum(size, axis=axes, keepdims=True), re.value.shape)

    inherited, reach = summed([p.error for p in parts]), summed([p.reach for p in parts])
    factor = transform_error(sizes, re.arithmetic, real=im is None)
    factor += 4 * re.unit if inverse else 0.0
    # Each of the at most sum(sizes) products and sums of a path may underflow, in every point.
    under = 4.0 * count * (sum(sizes) + 1) * re.arithmetic.tau_acc
    own = np.where(reach > 0, factor * reach + under, 0.0)
    error = np.where(reach >= re.largest, np.inf, inherited + own)
    scale = max(count, 1) if inverse else 1
    return tuple(re.of(v, error / scale) for v in values)
