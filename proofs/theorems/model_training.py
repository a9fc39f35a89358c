"""Training: the expected first loss, one step of AdamW, and the gradient of a tied table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import sympy

from assay.proofs.mutants import mutant, rebound
from assay.proofs.obligation import Case, Obligation, Twin
from assay.proofs.scalars.symbols import Symbolic, expression
from assay.proofs.scalars.terms import row
from assay.spec.layers.cross_entropy import cross_entropy
from assay.spec.layers.layer import sequential
from assay.spec.layers.layer_norm import layer_norm
from assay.spec.models import char_gpt, gpt
from assay.spec.models.layout import expand
from assay.spec.models.networks import char_gpt as char_gpt_network
from assay.spec.models.networks import gpt as gpt_network
from assay.spec.optimizers.adam import adam_init, adam_step, adamw_step

Loss = Callable[..., Any]
Optimizer = Callable[..., Any]
S = sympy.Symbol("s", positive=True)


def _loss(loss: Loss, size: int, target: int) -> tuple[tuple[sympy.Symbol, ...], sympy.Expr]:
    """The loss of logits s x_0, ..., s x_(V-1)."""
    x = sympy.symbols(f"x:{size}", real=True)
    logits = row(*(Symbolic(S * each) for each in x))[None]
    return x, expression(loss(logits, np.array([target]))[()])


def _expected(polynomial: sympy.Expr, x: tuple[sympy.Symbol, ...]) -> sympy.Expr:
    """Expectation over independent N(0, 1), of a polynomial of degree two at most."""
    found = sympy.Poly(polynomial, *x)
    moments = {0: 1, 1: 0, 2: 1}
    return sympy.Add(*(c * sympy.prod([moments[p] for p in powers]) for powers, c in found.terms()))


def first_loss(loss: Loss, sizes: tuple[int, ...]) -> Iterator[Case]:
    """The expected loss is log V at s = 0 and convex in s: ln V + s² (1 - 1/V) / 2 + ..."""
    for size in sizes:
        x, value = _loss(loss, size, size - 1)
        mass = sympy.Add(*(sympy.exp(S * each) for each in x))
        rest = sympy.expand(value - (sympy.log(mass) - S * x[-1]))
        yield Case(f"V={size}, log-sum-exp - target: remains {rest}", rest == 0)
        start, slope, bend = (
            sympy.simplify(sympy.diff(value, S, order).subs(S, 0)) for order in range(3)
        )
        means = tuple(sympy.factor(_expected(sympy.expand(part), x)) for part in (slope, bend))
        want = (0, sympy.Rational(size - 1, size))
        shown = (
            rf"\ell(0) = {sympy.latex(start)},\; \operatorname{{E}} \ell'(0) = {means[0]}",
            rf"\operatorname{{E}} \ell''(0) = {sympy.latex(means[1])} = 1 - 1/V",
        )
        yield Case(
            f"V={size}: log V, then {means}", start == sympy.log(size) and means == want, shown
        )
        # The variance of x under the weights: convex, so that the tangent at 0 lies below.
        weights = [sympy.exp(S * each) / mass for each in x]
        variance = sum(
            weights[i] * weights[j] * (x[i] - x[j]) ** 2 for j in range(size) for i in range(j)
        )
        rest = sympy.expand(sympy.numer(sympy.together(sympy.diff(value, S, 2) - variance)))
        yield Case(f"V={size}, second derivative is a variance: remains {rest}", rest == 0)


def upper_bound(deviation: float, widths: tuple[int, int]) -> Iterator[Case]:
    """E log sum exp <= log sum E exp = ln V + s²/2, by the tangent of log; s² = 0.02² D < 0.2 up to
    D = 499.
    """
    z = sympy.Symbol("z", real=True)
    y, c = sympy.symbols("y c", positive=True)

    def exponent(at: Any) -> Any:  # of the density of N(0, s²)
        return -(at**2) / (2 * S**2)

    rest = sympy.expand(z + exponent(z) - exponent(z - S**2) - S**2 / 2)
    moved = r"e^z\, p(z) = e^{s^2 / 2}\, p(z - s^2) \Rightarrow \operatorname{E} e^z = e^{s^2 / 2}"
    yield Case(f"the density moves by s²: remains {rest}", rest == 0, (moved,))
    gap = sympy.log(c) + (y - c) / c - sympy.log(y)
    touch = [sympy.simplify(part.subs(y, c)) for part in (gap, sympy.diff(gap, y))]
    bend = sympy.simplify(sympy.diff(gap, y, 2))
    yield Case(
        f"log lies below its tangent: {bend} > 0", touch == [0, 0] and bool(bend.is_positive)
    )
    for module, config in ((gpt, gpt.GPTConfig()), (char_gpt, char_gpt.CharGPTConfig(tied=True))):
        table = next(p for p in expand(module.layout(config)) if p.name == "token")
        yield Case(
            f"table starts at {table.init}", getattr(table.init, "deviation", 0) == deviation
        )
    below, above = (Fraction(str(deviation)) ** 2 * d / 2 for d in widths)
    limit = Fraction(1, 10)
    yield Case(f"s²/2 = {float(below):.4g} and {float(above):.4g}", below < limit <= above)


def unit_rows(eps: float) -> Iterator[Case]:
    """Squares of a normed row sum to D var / (var + eps) <= D, so that s² <= 0.02² D."""
    for width in (2, 3):
        x = sympy.symbols(f"x:{width}", real=True)
        rows = layer_norm(row(*map(Symbolic, x))[None], eps=eps)[0]
        squares = sympy.Add(*(expression(y) ** 2 for y in rows))
        mean = sympy.Add(*x) / width
        variance = sympy.Add(*((each - mean) ** 2 for each in x)) / width
        want = width * variance / (variance + sympy.Rational(1e-5))
        rest = sympy.simplify(squares - want)
        yield Case(f"D={width}: remains {rest}", rest == 0)


def one_step(step: Optimizer) -> Iterator[Case]:
    """From rest, any betas: p (1 - lr d) - lr g / (|g| + eps); equal gradients repeat it."""
    p, g = sympy.symbols("p g", real=True)
    lr, eps, decay = sympy.symbols("eta epsilon d", positive=True)
    betas = sympy.symbols("beta_1 beta_2", positive=True)
    options = {
        "lr": row(Symbolic(lr)),
        "eps": row(Symbolic(eps)),
        "weight_decay": row(Symbolic(decay)),
    }
    held, want = [row(Symbolic(p))], p
    state = adam_init(held)
    for number in (1, 2):
        held, state = step(
            held, [row(Symbolic(g))], state, betas=tuple(row(Symbolic(b)) for b in betas), **options
        )
        want = want * (1 - lr * decay) - lr * g / (sympy.Abs(g) + eps)
        rest = sympy.simplify(expression(held[0][0]) - want)
        yield Case(
            f"step {number}: remains {rest}",
            rest == 0 and state.step == number,
            (rf"p_{number} = {sympy.latex(sympy.expand(want))}",) if number == 1 else (),
        )


def tied(network: Callable[[Any], Any], config: Any) -> Iterator[Case]:
    """The gradient of the table is the derivative of sum(g y), which counts both of its uses."""
    names = [f"{c}_{v}{d}" for c in ("E", "g") for v in range(2) for d in range(2)]
    symbols = sympy.symbols(names, real=True)
    table = row(*map(Symbolic, symbols[:4])).reshape(2, 2)
    cotangent = row(*map(Symbolic, symbols[4:6])).reshape(1, 1, 2)
    zero = row(Symbolic(0), Symbolic(0))
    params = {
        "token": table,
        "position": row(Symbolic(2), Symbolic(-1)).reshape(1, 2),
        "final.weight": row(Symbolic(1), Symbolic(3)),
        "final.bias": zero,
    }
    built, ids = network(config), np.array([[1]])
    loss = expression(np.sum(built.forward(params, ids) * cotangent))
    _, found = built.backward(params, ids, cotangent)
    for i, symbol in enumerate(symbols[:4]):
        rest = _remains(sympy.diff(loss, symbol) - expression(found["token"].flat[i]))
        yield Case(f"{type(config).__name__}, {symbol}: remains {rest}", rest == 0)


def _remains(difference: sympy.Expr) -> sympy.Expr:
    """0 iff the difference is, with one square root in it."""
    roots = {p.base: p for p in difference.atoms(sympy.Pow) if p.exp.is_Rational and p.exp.q == 2}
    r = sympy.Symbol("r", positive=True)
    bases = {sympy.expand(base) for base in roots}
    if len(bases) != 1:
        return sympy.simplify(difference)
    named = difference.replace(
        lambda p: isinstance(p, sympy.Pow) and p.exp.is_Rational and p.exp.q == 2,
        lambda p: r ** (2 * p.exp),
    )
    top = sympy.numer(sympy.together(named))
    return sympy.rem(sympy.expand(top), r**2 - bases.pop(), r)


def tied_models(change: Callable[[Callable[..., Any]], Callable[..., Any]]) -> Iterator[Case]:
    """Both transformers with a tied head, without blocks."""
    sizes = {"vocabulary": 2, "context": 1, "layers": 0, "heads": 1, "width": 2}
    tied_char = char_gpt.CharGPTConfig.unchecked(**sizes, tied=True)
    yield from tied(change(gpt_network.network), gpt.GPTConfig.unchecked(**sizes))
    yield from tied(change(char_gpt_network.network), tied_char)


def _first_use_only(network: Callable[..., Any]) -> Callable[..., Any]:
    kept = "{name: g for part in found for name, g in part.items()}"
    return rebound(network, sequential=mutant(sequential, "combined(*reversed(found))", kept))


CALCULUS = ("sympy's derivatives and simplification",)
OBLIGATIONS: tuple[Obligation, ...] = (
    Obligation(
        "model.initial_loss/lower",
        "model.initial_loss",
        r"\operatorname{E} \ell = \ln V + \tfrac{s^2}{2} (1 - 1/V) + o(s^2) \ge \ln V",
        "cross_entropy of V = 2, 3, 4 logits, independent N(0, s²), one of them the target",
        "derived",
        "sympy",
        partial(first_loss, cross_entropy, (2, 3, 4)),
        Twin(
            "labels are smoothed",
            partial(first_loss, partial(cross_entropy, label_smoothing=0.5), (2,)),
        ),
        (*CALCULUS, "Jensen's inequality, and derivatives under the expectation"),
    ),
    Obligation(
        "model.initial_loss/upper",
        "model.initial_loss",
        r"\operatorname{E} \ln \sum_v e^{z_v} \le \ln \sum_v \operatorname{E} e^{z_v}"
        r" = \ln V + \tfrac{s^2}{2}",
        "any V, logits N(0, s²); s²/2 < 0.1 for D <= 499 at deviation 0.02",
        "derived",
        "sympy",
        partial(upper_bound, 0.02, (499, 500)),
        Twin("up to a width of 500", partial(upper_bound, 0.02, (500, 501))),
        (*CALCULUS, "the expectation of an inequality"),
    ),
    Obligation(
        "model.initial_loss/rows",
        "model.initial_loss",
        r"\sum_i y_i^2 = D\, \sigma^2 / (\sigma^2 + \epsilon) \le D",
        "layer_norm of rows of two and three numbers",
        "derived",
        "sympy",
        partial(unit_rows, 1e-5),
        Twin("another eps", partial(unit_rows, 1e-3)),
        CALCULUS,
    ),
    Obligation(
        "model.one_step/adamw",
        "model.one_step",
        r"\theta_1 = (1 - \eta d)\, \theta_0 - \eta\, g / (|g| + \epsilon)",
        "adamw_step from rest, any rate, betas, eps and decay; two steps of one gradient",
        "derived",
        "sympy",
        partial(one_step, adamw_step),
        Twin("decay is added to the gradient", partial(one_step, adam_step)),
        CALCULUS,
    ),
    Obligation(
        "model.tied_gradient/both-uses",
        "model.tied_gradient",
        r"\bar E = \bar E_{\text{input}} + \bar E_{\text{head}}",
        "gpt and char_gpt with a tied head, no blocks, one token of two: any table and cotangent",
        "derived",
        "sympy",
        partial(tied_models, lambda network: network),
        Twin("the first use alone", partial(tied_models, _first_use_only)),
        CALCULUS,
    ),
)
