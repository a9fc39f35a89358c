"""Claims about the error bounds themselves: what every verdict of a test rests on."""

from __future__ import annotations

from assay.spec.claims.entry import Claim, family

_bounds = family("bounds")
_unary = family("bounds", "relu", "gelu", "silu", "sigmoid", "tanh", "softplus")

BOUNDS: tuple[Claim, ...] = (
    _bounds(
        "add",
        "value",
        "A rounded sum or difference of two inexact numbers is off by no more than its rule says.",
        r"|\operatorname{fl}(\hat x + \hat y) - (x + y)| \le e_x + e_y + r (|x + y| + e_x + e_y)",
        "P",
    ),
    _bounds(
        "multiply",
        "value",
        "A rounded product of two inexact numbers is off by no more than its rule says.",
        r"|\operatorname{fl}(\hat x \hat y) - x y| \le i + r (|x y| + i) + \tau,\quad"
        r" i = |x| e_y + e_x |y| + e_x e_y",
        "P",
    ),
    _bounds(
        "divide",
        "value",
        "A quotient, also as a product with a reciprocal, is off by no more than its rule says.",
        r"|\operatorname{fl}(\hat x / \hat y) - x / y| \le i + ((1 + r)^2 - 1) (|x / y| + i) +"
        r" \tau,\quad i = \frac{e_x + |x / y|\, e_y}{|y| - e_y}",
        "P",
    ),
    _bounds(
        "root",
        "value",
        "A square root of an inexact number is off by no more than its rule says.",
        r"|\sqrt{\hat x} - \sqrt{x}| \le e_x / (\sqrt{x} + \sqrt{x - e_x})",
        "P",
    ),
    _bounds(
        "exponential",
        "value",
        "An exponential of an inexact number is off by no more than its rule says.",
        r"|e^{\hat x} - e^x| \le e^x (e^{e_x} - 1)",
        "P",
    ),
    _bounds(
        "extreme",
        "value",
        "The larger of two inexact numbers is off by at most the larger error.",
        r"|\max(\hat x, \hat y) - \max(x, y)| \le \max(e_x, e_y)",
        "P",
    ),
    _bounds(
        "choice",
        "value",
        "What a comparison of inexact numbers chooses is within the bound of the choice.",
        r"\hat x \le \hat y \Leftrightarrow x \le y \text{ where } |x - y| > e_x + e_y",
        "P",
    ),
    _bounds(
        "sum",
        "value",
        "A sum of n terms, in any order and bracketing, is off by no more than its rule says.",
        r"|\hat S - S| \le \sum_i e_i + \gamma_{n-1} \sum_i (|x_i| + e_i)",
        "P",
    ),
    _bounds(
        "dot",
        "value",
        "A sum of n products, in any order, fused or not, is off by no more than its rule says.",
        r"|\hat S - S| \le I + \gamma_n (R + n \tau) + n \tau",
        "P",
    ),
    _bounds(
        "gamma",
        "value",
        "n roundings in a row grow an error by no more than gamma_n.",
        r"(1 + u)^n - 1 \le \gamma_n = \frac{n u}{1 - n u}",
        "P",
    ),
    _bounds(
        "order",
        "value",
        "Sums and products of two numbers commute bit for bit; sums of three need not.",
        r"x + y = y + x,\quad x y = y x,\quad (x + y) + z \ne x + (y + z)",
        "P",
    ),
    _bounds(
        "scaling",
        "value",
        "A power of two scales rounded sums and products bit for bit above the subnormal numbers.",
        r"\operatorname{fl}(2^k x + 2^k y) = 2^k \operatorname{fl}(x + y),\quad"
        r" \operatorname{fl}((2^k x)\, y) = 2^k \operatorname{fl}(x y)",
        "P",
    ),
    _bounds(
        "covers",
        "value",
        "The bound of an op is never below the true error of its evaluation in float32.",
        r"|\hat y - y| \le b(x)",
        "P",
    ),
    _unary(
        "every_input",
        "value",
        "At every number of a 16-bit format the spec in float32 lies within the derived bound.",
        r"\forall x \in \mathbb{F}_{16}\quad |\hat f(x) - f(x)| \le b(x)",
        "P",
    ),
)
