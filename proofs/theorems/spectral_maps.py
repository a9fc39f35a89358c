"""Fourier transforms and spectral convolutions, exactly: inverse, adjoint, Parseval, gradients."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import lcm, prod
from typing import Any

import numpy as np

from assay.proofs.derivation import gradient_case
from assay.proofs.mutants import mutant, rebound
from assay.proofs.obligation import Body, Case, Obligation, Twin
from assay.proofs.scalars.polynomials import Names, inner, vanish
from assay.spec.spectral.bands import band_mask
from assay.spec.spectral.dft import dense_dft, dft, idft
from assay.spec.spectral.fno_block import fno_block, fno_block_backward, through_parts
from assay.spec.spectral.rfft_conv import (
    spectral_conv_rfft,
    spectral_conv_rfft_backward,
)
from assay.spec.spectral.spectral_conv import spectral_conv, spectral_conv_backward

Map = Callable[..., Any]
Grid = tuple[int, ...]
LINES: tuple[Grid, ...] = tuple((n,) for n in range(1, 9))
GRIDS: tuple[Grid, ...] = ((2, 3), (2, 3, 2), (3, 1), (4, 2))
ALL = (*LINES, *GRIDS)
SMALL: tuple[Grid, ...] = ((1,), (2,), (3,), (4,), (5,), (2, 3), (2, 2, 2))
HALVES = tuple((n, bins) for n in range(1, 7) for bins in range(n // 2 + 2))


def _names(grid: Grid, **shapes: tuple[int, ...]) -> Names:
    """With the roots of unity that the spec needs: it looks up cos and sin by eighths of a turn."""
    return Names(8 * lcm(*grid), **shapes)


def _axes(grid: Grid) -> range:
    return range(len(grid))


def round_trip(forward: Map, inverse: Map) -> Iterator[Case]:
    """The inverse transform undoes the transform, and the transform the inverse."""
    for grid in ALL:
        names = _names(grid, re=grid, im=grid)
        x = (names["re"], names["im"])
        for label, (first, then) in (
            ("there and back", (forward, inverse)),
            ("back and there", (inverse, forward)),
        ):
            y = then(*first(*x, _axes(grid)), _axes(grid))
            same = all(vanish(a - b) for a, b in zip(y, x, strict=True))
            yield Case(f"{grid}, {label}", same)


def adjoint(inverse: Map) -> Iterator[Case]:
    """<F x, y> = N <x, F^-1 y> for complex x and y: the adjoint is N times the inverse."""
    for grid in ALL:
        names = _names(grid, a=grid, b=grid, c=grid, d=grid)
        a, b, c, d = (names[n] for n in "abcd")
        (p, q), (r, s) = dft(a, b, _axes(grid)), inverse(c, d, _axes(grid))
        size = prod(grid)
        real = inner(p, c) + inner(q, d) - size * (inner(a, r) + inner(b, s))
        imaginary = inner(p, d) - inner(q, c) - size * (inner(a, s) - inner(b, r))
        yield Case(f"{grid}", vanish(np.array([real, imaginary], dtype=object)))


def parseval(size: Callable[[Grid], Any]) -> Iterator[Case]:
    """sum |X_k|^2 = N sum |x|^2."""
    for grid in ALL:
        names = _names(grid, re=grid, im=grid)
        x = (names["re"], names["im"])
        energies = [sum(inner(p, p) for p in v) for v in (dft(*x, _axes(grid)), x)]
        yield Case(f"{grid}", vanish(energies[0] - size(grid) * energies[1]))


def dense(forward: Map) -> Iterator[Case]:
    """Axis after axis gives what one matrix over the whole grid gives."""
    for grid in ALL:
        names = _names(grid, re=grid, im=grid)
        x = (names["re"], names["im"])
        pairs = zip(forward(*x, _axes(grid)), dense_dft(*x, _axes(grid)), strict=True)
        yield Case(f"{grid}", all(vanish(a - b) for a, b in pairs))


def _modes(grid: Grid) -> Iterator[int | None]:
    yield from (None, *range(max(grid) // 2 + 1))


def gradient(backward: Map) -> Iterator[Case]:
    """Signal and both parts of the matrices, on lines and grids, for every band."""
    for grid, width in itertools.product(SMALL, (1, 2)):
        if prod(grid) * width > 6:
            continue
        shape, weight = (1, *grid, width), (prod(grid), width, width)
        names = _names(grid, x=shape, re=weight, im=weight, g=shape)
        inputs = {name: names[name] for name in ("x", "re", "im")}
        for modes in _modes(grid):
            y = spectral_conv(*inputs.values(), modes=modes)
            got = backward(*inputs.values(), names["g"], modes=modes)
            yield gradient_case(f"{grid}, width {width}, modes {modes}", y, names["g"], inputs, got)


def half_gradient(backward: Map) -> Iterator[Case]:
    """Signal and both parts of the kept bins, every number of them."""
    for (n, bins), width in itertools.product(HALVES, (1, 2)):
        if n * width > 6:
            continue
        shape, weight = (1, n, width), (bins, width, width)
        names = _names((n,), x=shape, re=weight, im=weight, g=shape)
        inputs = {name: names[name] for name in ("x", "re", "im")}
        y = spectral_conv_rfft(*inputs.values())
        got = backward(*inputs.values(), names["g"])
        yield gradient_case(f"n={n}, {bins} bins, width {width}", y, names["g"], inputs, got)


def block_gradient(backward: Map) -> Iterator[Case]:
    """All five inputs of a block without an activation; the activations have their own."""
    for (n, width), half in itertools.product(((1, 2), (2, 2), (3, 1), (4, 1)), (False, True)):
        shape, square = (1, n, width), (width, width)
        weight = (n // 2 + 1 if half else n, *square)
        names = _names((n,), x=shape, re=weight, im=weight, skip=square, bias=(width,), g=shape)
        inputs = {name: names[name] for name in ("x", "re", "im", "skip", "bias")}
        options: dict[str, Any] = {"activation": "identity", "half": half}
        y = fno_block(*inputs.values(), **options)
        got = backward(*inputs.values(), names["g"], **options)
        yield gradient_case(f"n={n}, width {width}, half {half}", y, names["g"], inputs, got)


def dead_bins(backward: Map) -> Iterator[Case]:
    """The matrices outside the band are not in the output, and get 0."""
    for grid in SMALL:
        shape, weight = (1, *grid, 1), (prod(grid), 1, 1)
        names = _names(grid, x=shape, re=weight, im=weight, g=shape)
        x, re, im, g = (names[n] for n in ("x", "re", "im", "g"))
        for modes in range(max(grid) // 2 + 1):
            dead = np.flatnonzero(~band_mask(grid, modes))
            y = inner(spectral_conv(x, re, im, modes=modes), g) + 0 * x.flat[0]
            lost = [y.derivative(w[k, 0, 0]) for w in (re, im) for k in dead]
            got = backward(x, re, im, g, modes=modes)
            zero = vanish(got.re[dead]) and vanish(got.im[dead])
            name = f"{grid}, modes {modes}: {dead.size} dead"
            yield Case(name, zero and vanish(np.array(lost, dtype=object)))


def real_bins_ignored(backward: Map) -> Iterator[Case]:
    """The imaginary weight of a bin that is real is not in the output, and gets 0; that of every
    other bin is, and does not.
    """
    for n, bins in HALVES:
        names = _names((n,), x=(1, n, 1), re=(bins, 1, 1), im=(bins, 1, 1), g=(1, n, 1))
        x, re, im, g = (names[k] for k in ("x", "re", "im", "g"))
        y = inner(spectral_conv_rfft(x, re, im), g)
        got = backward(x, re, im, g).im
        real = {k for k in range(bins) if 2 * k % n == 0}
        for k in range(bins):
            slope = y.derivative(im[k, 0, 0])
            right = vanish(np.array([slope])) == vanish(got[k]) == (k in real)
            yield Case(f"n={n}, {bins} bins: bin {k} is real: {k in real}", right)


def identity(full: Map, half: Map) -> Iterator[Case]:
    """The identity at every frequency returns the signal."""
    for grid in ALL:
        names = _names(grid, x=(1, *grid, 2))
        x, one = names["x"], np.stack([np.eye(2, dtype=int)] * prod(grid)).astype(object)
        yield Case(f"{grid}", vanish(full(x, one, 0 * one) - x))
        if len(grid) == 1:
            one = one[: grid[0] // 2 + 1]
            yield Case(f"{grid}, half", vanish(half(x, one, 0 * one) - x))


def _maps(grid: Grid, width: int = 1) -> Iterator[tuple[str, Map, tuple[int, ...]]]:
    """The full transform, whole and with a band, and the half one with one bin and with all."""
    square = (width, width)
    for modes in (None, 1):
        yield f"modes {modes}", partial(spectral_conv, modes=modes), (prod(grid), *square)
    if len(grid) == 1:
        for bins in {1, grid[0] // 2 + 1}:
            yield f"{bins} bins", spectral_conv_rfft, (bins, *square)


def linear(change: Map) -> Iterator[Case]:
    """f(a x + y) = a f(x) + f(y), for any matrices."""
    for grid in SMALL:
        for label, f, weight in _maps(grid):
            shape = (1, *grid, 1)
            names = _names(grid, x=shape, y=shape, re=weight, im=weight, a=(1,))
            x, y, re, im, a = (names[n] for n in ("x", "y", "re", "im", "a"))
            f = change(f)
            gap = f(a * x + y, re, im) - (a * f(x, re, im) + f(y, re, im))
            yield Case(f"{grid}, {label}", vanish(gap))


def translation(move: int) -> Iterator[Case]:
    """f(x rolled) = f(x) rolled, by one along each axis: other shifts are several of these."""
    for grid in SMALL:
        for label, f, weight in _maps(grid):
            names = _names(grid, x=(1, *grid, 1), re=weight, im=weight)
            x, re, im = (names[n] for n in ("x", "re", "im"))
            y = f(x, re, im)
            for axis in _axes(grid):
                gap = f(np.roll(x, 1, axis + 1), re, im) - np.roll(y, move, axis + 1)
                yield Case(f"{grid}, {label}, axis {axis}", vanish(gap))


def self_adjoint(backward: Map, half: Map) -> Iterator[Case]:
    """<f(x), g> = <x, dx(g)> for any matrices, x and g."""
    for grid in SMALL:
        for label, f, weight in _maps(grid):
            shape = (1, *grid, 1)
            names = _names(grid, x=shape, g=shape, re=weight, im=weight)
            x, g, re, im = (names[n] for n in ("x", "g", "re", "im"))
            options = f.keywords if isinstance(f, partial) else {}
            dx = (backward if options else half)(x, re, im, g, **options).x
            gap = inner(f(x, re, im), g) - inner(x, dx)
            yield Case(f"{grid}, {label}", vanish(gap))


def unitary(conjugate: int) -> Iterator[Case]:
    """|f(x)| = |x| where W_k is a unit number and W_-k its conjugate: z is any root of unity.

    The weights are i and -i at opposite frequencies, 1 or -1 where a frequency is its own opposite.
    """
    for grid in SMALL:
        names = _names(grid, x=(1, *grid, 1))
        x, size = names["x"], prod(grid)
        re, im = (np.zeros((size, 1, 1), dtype=object) for _ in range(2))
        places = np.indices(grid).reshape(len(grid), size).T
        for k, place in enumerate(places):
            other = np.ravel_multi_index(tuple(-place % grid), grid)
            if other == k:
                re[k] = 1 - 2 * (k % 2)
            else:
                im[k] = 1 if k < other else conjugate
        y = spectral_conv(x, re, im)
        yield Case(f"{grid}", vanish(inner(y, y) - inner(x, x)))
        if len(grid) == 1:
            y = spectral_conv_rfft(x, re[: size // 2 + 1], im[: size // 2 + 1])
            yield Case(f"{grid}, half", vanish(inner(y, y) - inner(x, x)) or conjugate == 1)


def flattened(grids: Sequence[Grid]) -> Iterator[Case]:
    """With the same matrices, the transform of the flattened grid gives another signal."""
    for grid in grids:
        size = prod(grid)
        names = _names((*grid, size), x=(1, *grid, 1))
        x, zero = names["x"], np.zeros((size, 1, 1), dtype=object)
        kept = zero.copy()
        kept[1] = 1
        on_grid = spectral_conv(x, kept, zero).reshape(1, size, 1)
        on_line = spectral_conv(x.reshape(1, size, 1), kept, zero)
        yield Case(f"{grid}: frequency 1 of the line", not vanish(on_grid - on_line))


FLIPPED = mutant(idft, "_transform(re, im, axes, 1)", "_transform(re, im, axes, -1)")
UNSCALED = mutant(idft, "x.re / size, x.im / size", "x.re, x.im")
FIRST_AXIS = mutant(dft, "_transform(re, im, axes, -1)", "_transform(re, im, axes[:1], -1)")
PLAIN = mutant(
    spectral_conv_backward,
    "product(adjoint(_spectrum(x)), dy)",
    "product(Pair(*(np.swapaxes(p, -1, -2) for p in _spectrum(x))), dy)",
)
UNDROPPED = mutant(
    spectral_conv_backward,
    "dy = _in_band(_spectrum(cotangent / max(count, 1)), x.shape[1:-1], modes)",
    "dy = _spectrum(cotangent / max(count, 1))",
)
TWICE = mutant(spectral_conv_rfft_backward, "select(once, p, 2 * p)", "2 * p")
ALL_IMAGINARY = mutant(
    spectral_conv_rfft_backward,
    "dweight = _real_at(product(adjoint(half_spectrum(x, bins)), dy), n)",
    "dweight = product(adjoint(half_spectrum(x, bins)), Pair(dy.re, dy.im + 1))",
)


def _without_last(x: Any, re: Any, im: Any) -> Any:
    return spectral_conv(x, re, im, modes=tuple((n - 1) // 2 for n in x.shape[1:-1]))


NO_SKIP = rebound(
    fno_block_backward, through_parts=mutant(through_parts, "np.swapaxes(skip, 0, 1)", "skip")
)
LINE_OF_8 = f"lengths 1..8 and grids {GRIDS}"
BANDS = f"grids {SMALL}, all frequencies and modes 1; half spectra of n in 1..5, 1 bin and all"
EXACT = (
    "cos and sin are the real and imaginary parts of roots of unity, of which the cyclotomic "
    "polynomial is the minimal one",
)


def _derived(
    claim: str, variant: str, statement: str, generality: str, body: Body, twin: Twin
) -> Obligation:
    return Obligation(
        f"spectral.{claim}/{variant}",
        f"spectral.{claim}",
        statement,
        generality,
        "derived",
        "sympy",
        body,
        twin,
        EXACT,
        60.0,
    )


OBLIGATIONS: tuple[Obligation, ...] = (
    _derived(
        "round_trip",
        "transforms",
        r"F^{-1} F x = F F^{-1} x = x",
        f"symbolic complex x, {LINE_OF_8}",
        partial(round_trip, dft, idft),
        Twin("the phase of the inverse turns the same way", partial(round_trip, dft, FLIPPED)),
    ),
    _derived(
        "round_trip",
        "identity",
        r"W_k = I \Rightarrow f(x) = x",
        f"symbolic x of width 2, {LINE_OF_8}; half spectra of the lengths",
        partial(identity, spectral_conv, spectral_conv_rfft),
        Twin(
            "the highest frequency is dropped",
            partial(identity, _without_last, spectral_conv_rfft),
        ),
    ),
    _derived(
        "adjoint",
        "transforms",
        r"\langle F x, y \rangle = N \langle x, F^{-1} y \rangle",
        f"symbolic complex x and y, {LINE_OF_8}",
        partial(adjoint, idft),
        Twin("the inverse is not divided by N", partial(adjoint, UNSCALED)),
    ),
    _derived(
        "adjoint",
        "convolutions",
        r"\langle f(x), g \rangle = \langle x, \bar x(g) \rangle",
        f"symbolic x, g and W, width 1; {BANDS}",
        partial(self_adjoint, spectral_conv_backward, spectral_conv_rfft_backward),
        Twin(
            "inner bins are counted once",
            partial(self_adjoint, spectral_conv_backward, TWICE),
        ),
    ),
    _derived(
        "parseval",
        "transforms",
        r"\sum_k |X_k|^2 = N \sum_x |v_x|^2",
        f"symbolic complex x, {LINE_OF_8}",
        partial(parseval, prod),
        Twin("the factor N is left out", partial(parseval, lambda _: 1)),
    ),
    _derived(
        "parseval",
        "unitary",
        r"W_{-k} = \overline{W_k},\, |W_k| = 1 \Rightarrow \lVert f(x) \rVert = \lVert x \rVert",
        f"symbolic x of width 1, weights 1, -1, i and -i; grids {SMALL} and half spectra",
        partial(unitary, -1),
        Twin("the weights of opposite frequencies are equal", partial(unitary, 1)),
    ),
    _derived(
        "per_axis_equals_dense",
        "transforms",
        r"X_k = \sum_x v_x\, e^{-2 \pi i \sum_a k_a x_a / n_a}",
        f"symbolic complex x, {LINE_OF_8}",
        partial(dense, dft),
        Twin("only the first axis is transformed", partial(dense, FIRST_AXIS)),
    ),
    _derived(
        "vjp_refines",
        "full",
        r"\bar v = \frac{\partial}{\partial v} \sum g\, f(x; W),\quad v \in \{x, W\}",
        f"symbolic x, W and g; grids {SMALL}, width 1 and 2 up to 6 numbers, every band",
        partial(gradient, spectral_conv_backward),
        Twin("the spectrum is not conjugated", partial(gradient, PLAIN)),
    ),
    _derived(
        "vjp_refines",
        "half",
        r"\bar v = \frac{\partial}{\partial v} \sum g\, f(x; W),\quad v \in \{x, W\}",
        "symbolic x, W and g; n in 1..6, every number of bins, width 1 and 2 up to 6 numbers",
        partial(half_gradient, spectral_conv_rfft_backward),
        Twin("real bins count twice like the others", partial(half_gradient, TWICE)),
    ),
    _derived(
        "vjp_refines",
        "block",
        r"\bar v = \frac{\partial}{\partial v} \sum g\, (f(x; W) + x S + b)",
        "symbolic x, W, S, b and g, full and half; (n, width) in (1,2), (2,2), (3,1), (4,1), "
        "activation identity",
        partial(block_gradient, fno_block_backward),
        Twin("the skip is not transposed", partial(block_gradient, NO_SKIP)),
    ),
    _derived(
        "dead_bins_zero_grad",
        "polynomials",
        r"\neg \operatorname{keep}(k) \Rightarrow \partial y / \partial W_k = 0,\; \bar W_k = 0",
        f"symbolic x, W and g, width 1; grids {SMALL}, every band",
        partial(dead_bins, spectral_conv_backward),
        Twin("the gradient is not dropped outside the band", partial(dead_bins, UNDROPPED)),
    ),
    _derived(
        "linear",
        "polynomials",
        r"f(\alpha x + y) = \alpha f(x) + f(y)",
        f"symbolic x, y, W and factor, width 1; {BANDS}",
        partial(linear, lambda f: f),
        Twin("a constant is added", partial(linear, lambda f: lambda *v: f(*v) + 1)),
    ),
    _derived(
        "dc_nyquist_imaginary_ignored",
        "polynomials",
        r"2 k \equiv 0 \pmod n \Leftrightarrow \partial y / \partial \operatorname{Im} W_k = 0",
        "symbolic x, W and g, width 1; n in 1..6, every number of bins",
        partial(real_bins_ignored, spectral_conv_rfft_backward),
        Twin("their gradient is not set to 0", partial(real_bins_ignored, ALL_IMAGINARY)),
    ),
    _derived(
        "translation_equivariant",
        "polynomials",
        r"f(x_{\cdot - s}) = f(x)_{\cdot - s}",
        f"symbolic x and W, width 1, a shift by one along each axis; {BANDS}",
        partial(translation, 1),
        Twin("the output moves the other way", partial(translation, -1)),
    ),
    _derived(
        "not_flattened",
        "witnesses",
        r"f_{n_1 \times n_2} \ne f_{n_1 n_2}",
        "symbolic x, one frequency kept; grids (2,2), (2,3), (3,2), (3,3), (2,2,2)",
        partial(flattened, ((2, 2), (2, 3), (3, 2), (3, 3), (2, 2, 2))),
        Twin("a grid of one row is a line", partial(flattened, ((1, 3),))),
    ),
)
