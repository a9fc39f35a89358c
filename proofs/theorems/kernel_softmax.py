"""Masked softmax, its gradient and its online recurrence, accepted by Coq's kernel."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np

from assay.proofs.kernel import Agreement, Mutation, literal
from assay.proofs.obligation import Obligation
from assay.proofs.scalars.rationals import Rational, array
from assay.proofs.theorems.kernel_checked import REALS, kernel_checked
from assay.spec.online import online_attend
from assay.spec.softmax import masked_softmax, penalty_softmax, softmax_backward

ANY_ROW = "any row length, real scores, mask, and number subtracted; the real exponential"
ANY_ARITHMETIC = "any row length, any scalar, whatever its operations compute"
# Integers, so that the powers of two that stand for exponentials are fractions.
SCORES, COTANGENTS = (1, -2, 3), (2, -1, 5)


def exact(values: Any) -> list[Fraction]:
    """A row of rationals, or of the plain zeros among them."""
    return [Rational(x).value for x in np.ravel(values)]


def rows() -> Iterator[tuple[list[int], list[bool]]]:
    """Every mask of up to three scores."""
    for n in range(len(SCORES) + 1):
        for mask in itertools.product((False, True), repeat=n):
            yield list(SCORES[:n]), list(mask)


def entries(scores: list[int], mask: list[bool]) -> str:
    """The row as the model writes it."""
    return f"({literal([(Fraction(s), a) for s, a in zip(scores, mask, strict=True)])})"


def softmax_grid() -> Iterator[Agreement]:
    """The model's weights, after whatever is subtracted, are ``masked_softmax``."""
    for scores, mask in rows():
        want = exact(masked_softmax(array(scores), np.array(mask, dtype=bool)))
        row = entries(scores, mask)
        name = f"masked_softmax of {scores} where {mask}"
        yield Agreement(name, f"masked_softmax (K := powers) {row}", want)
        yield Agreement(name, f"weights (K := powers) (2 # 1)%Q {row}", want)


def shift_grid() -> Iterator[Agreement]:
    """The same, of scores that are moved by 4."""
    for scores, mask in rows():
        moved = entries([s + 4 for s in scores], mask)
        want = exact(masked_softmax(array(scores) + 4, np.array(mask, dtype=bool)))
        name = f"masked_softmax of {scores} + 4 where {mask}"
        yield Agreement(name, f"weights (K := powers) (0 # 1)%Q {moved}", want)


def penalty_grid() -> Iterator[Agreement]:
    """The model's weights of penalised scores are ``penalty_softmax``."""
    for scores, mask in rows():
        given = entries(
            [s if a else s - 5 for s, a in zip(scores, mask, strict=True)], [True] * len(mask)
        )
        want = exact(penalty_softmax(array(scores), np.array(mask, dtype=bool), 5))
        name = f"penalty_softmax of {scores} where {mask}"
        yield Agreement(name, f"weights (K := powers) (0 # 1)%Q {given}", want)


def gradient_grid() -> Iterator[Agreement]:
    """The model's gradient is ``softmax_backward``."""
    for scores, mask in rows():
        allowed = np.array(mask, dtype=bool)
        weights = masked_softmax(array(scores), allowed)
        cotangent = array(COTANGENTS[: len(scores)])
        triples = [
            ((w, g), a) for w, g, a in zip(exact(weights), exact(cotangent), mask, strict=True)
        ]
        yield Agreement(
            f"softmax_backward of {scores} where {mask}",
            f"softmax_backward (K := powers) ({literal(triples)})",
            exact(softmax_backward(weights, cotangent, allowed)),
        )


def keys(scores: list[int], mask: list[bool], values: tuple[int, ...]) -> list[Any]:
    """Keys with their values, as the model pairs them."""
    each = zip(scores, mask, values[: len(scores)], strict=True)
    return [((Fraction(s), a), Fraction(v)) for s, a, v in each]


def online_grid() -> Iterator[Agreement]:
    """The model's recurrence, block by block, is ``online_attend``."""
    for (scores, mask), block in itertools.product(rows(), (1, 2)):
        every = keys(scores, mask, COTANGENTS)
        blocks = [every[i : i + block] for i in range(0, len(every), block)]
        values = array([[v] for v in COTANGENTS[: len(scores)]]).reshape(-1, 1)
        got = online_attend(array(scores), np.array(mask, dtype=bool), values, block)
        yield Agreement(
            f"online_attend of {scores} where {mask} in blocks of {block}",
            f"online (K := powers) ({literal(blocks)})",
            exact(got)[0],
        )


ONE = literal([(Fraction(1), True)])
TWO = literal([(Fraction(0), True), (Fraction(1), False)])
BOTH = literal([(Fraction(0), True), (Fraction(1), True)])
WEIGHTS = "weights (K := powers) (0 # 1)%Q"
KEEP_ALL = Mutation(
    "if snd e then exponential K (sub K (fst e) top) else zero K",
    "exponential K (sub K (fst e) top)",
    f"nth 1 ({WEIGHTS} ({TWO})) (0 # 1)%Q",
    "(0 # 1)%Q",
)

OBLIGATIONS: tuple[Obligation, ...] = (
    kernel_checked(
        "softmax.row_sum",
        "Softmax",
        ("row_sum", "weights_nonnegative", "allowed_positive"),
        r"0 \le w_j \le 1,\quad \sum_{j<n} w_j = [\exists j\, a_j]",
        ANY_ROW,
        softmax_grid,
        "the sum is 2",
        Mutation(
            "if seen row then 1 else 0.",
            "if seen row then 2 else 0.",
            f"sum ({WEIGHTS} ({ONE}))",
            "(2 # 1)%Q",
        ),
        axioms=REALS,
    ),
    kernel_checked(
        "softmax.blocked_zero",
        "Softmax",
        ("blocked_zero",),
        r"\neg a_j \Rightarrow w_j = 0",
        ANY_ROW,
        softmax_grid,
        "the mask is ignored in the exponentials",
        KEEP_ALL,
        axioms=REALS,
    ),
    kernel_checked(
        "softmax.blocked_independent",
        "Softmax",
        ("blocked_independent",),
        r"(\forall j\; a_j \Rightarrow s_j = t_j) \Rightarrow w(s) = w(t)",
        ANY_ARITHMETIC,
        softmax_grid,
        "the maximum runs over blocked entries too, which then decide what rounds to 0",
        Mutation(
            "match map fst (filter snd row) with",
            "match map fst row with",
            f"row_max (K := powers) ({TWO})",
            "row_max (K := powers) [((0 # 1)%Q, true); ((2 # 1)%Q, false)]",
        ),
    ),
    kernel_checked(
        "softmax.shift_invariant",
        "Softmax",
        ("shift_invariant",),
        r"w(s + c) = w(s)",
        ANY_ROW,
        shift_grid,
        "scores are scaled instead of shifted",
        Mutation(
            "(fst e + c : number reals, snd e)",
            "(fst e * c : number reals, snd e)",
            f"{WEIGHTS} ({BOTH})",
            f"{WEIGHTS} [((0 # 1)%Q, true); ((2 # 1)%Q, true)]",
        ),
        axioms=REALS,
    ),
    kernel_checked(
        "softmax.one_visible",
        "Softmax",
        ("one_visible",),
        r"a = e_j \Rightarrow w = e_j",
        ANY_ROW,
        softmax_grid,
        "the mask is ignored in the exponentials",
        KEEP_ALL,
        axioms=REALS,
    ),
    kernel_checked(
        "softmax.penalty_leaks",
        "Softmax",
        ("penalty_leaks",),
        r"\operatorname{softmax}(s - c\,[\neg a])_j > 0",
        "any row length, real scores, mask and penalty; the real exponential",
        penalty_grid,
        "penalised entries are blocked",
        Mutation(
            "else fst e - penalty) : number reals, true)) row.",
            "else fst e - penalty) : number reals, snd e)) row.",
            f"nth 1 ({WEIGHTS} ({TWO})) (0 # 1)%Q",
            f"nth 1 ({WEIGHTS} ({BOTH})) (0 # 1)%Q",
        ),
        axioms=REALS,
    ),
    kernel_checked(
        "softmax.grad_blocked_zero",
        "Gradient",
        ("grad_blocked_zero", "zero_weight_zero_gradient"),
        r"\neg a_j \Rightarrow \bar s_j = 0,\quad w_j = 0 \Rightarrow \bar s_j = 0",
        f"{ANY_ARITHMETIC}; where the weight is 0, any real cotangents",
        gradient_grid,
        "the mask is ignored",
        Mutation(
            "if allowed then mul K w (sub K (seen_cotangent t) d) else zero K.",
            "mul K w (sub K (seen_cotangent t) d).",
            "softmax_backward (K := powers) [((1 # 1)%Q, (1 # 1)%Q, true);"
            " ((1 # 1)%Q, (1 # 1)%Q, false)]",
            "[(0 # 1)%Q; (0 # 1)%Q]",
        ),
        axioms=REALS,
    ),
    kernel_checked(
        "softmax.grad_sums_zero",
        "Gradient",
        ("grad_sums_zero",),
        r"\sum_j \bar s_j = 0",
        "any row length, real scores, mask and cotangents; the real exponential",
        gradient_grid,
        "the product with the weights is not subtracted",
        Mutation(
            "mul K w (sub K (seen_cotangent t) d)",
            "mul K w (seen_cotangent t)",
            "sum (softmax_backward (K := powers) [((1 # 1)%Q, (1 # 1)%Q, true)])",
            "(0 # 1)%Q",
        ),
        axioms=REALS,
    ),
    kernel_checked(
        "softmax.vjp_refines",
        "Gradient",
        ("backward_is_derivative",),
        r"\frac{d}{dt}\, w_j(s + t v)\Big|_0 = w_j \Big(v_j - \sum_k v_k w_k\Big)",
        "any row length, real scores, mask and direction; the derivative of the real exponential",
        gradient_grid,
        "the product with the weights is not subtracted",
        Mutation(
            "mul K w (sub K (seen_cotangent t) d)",
            "mul K w (seen_cotangent t)",
            "softmax_backward (K := powers) [((1 # 1)%Q, (1 # 1)%Q, true)]",
            "[(0 # 1)%Q]",
        ),
        axioms=REALS,
    ),
    kernel_checked(
        "softmax.online",
        "Online",
        ("online_equals_direct",),
        r"\mathrm{acc} / \ell = \sum_j w_j v_j",
        "any blocks of any sizes, empty and all-blocked ones too; the real exponential",
        online_grid,
        "the accumulator is not rescaled",
        Mutation(
            "(add K (mul K rescale (acc s)) (contract es block))",
            "(add K (acc s) (contract es block))",
            f"online (K := powers) ({literal([keys([0], [True], (1,)), keys([1], [True], (1,))])})",
            "(1 # 1)%Q",
        ),
        axioms=REALS,
    ),
)
