"""Statements in LaTeX, typeset as MathML, which browsers show without fonts or scripts of ours."""

from __future__ import annotations

from functools import cache

from markupsafe import Markup


@cache
def mathml(latex: str) -> Markup:
    r"""The formula as markup; one that cannot be converted is shown as it is written.

    >>> mathml(r"x \le 1").startswith("<math")
    True
    """
    from latex2mathml.converter import convert

    try:
        return Markup(convert(latex))
    except Exception:  # the converter raises whatever its tokens run into
        return Markup("<code>{}</code>").format(latex)
