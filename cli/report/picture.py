"""Small arrays of a finding as grids: mask, error, got, want. A square says its index and value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup, escape

LIMIT = 24
"""Rows and columns shown; a shrunk case is nearly always smaller."""

_SIZE = 30
_NUMBERS = 10
"""Up to this many columns each square has room for its value."""


def picture(name: str, values: Any) -> Markup:
    """An SVG grid of a list of lists (or a single list); empty markup for anything else."""
    rows = _rows(values)
    if not rows or not rows[0]:
        return Markup("")
    shown = [row[:LIMIT] for row in rows[:LIMIT]]
    numbers = len(shown[0]) <= _NUMBERS and name != "mask"
    size = 2 * _SIZE if numbers else _SIZE * 4 // 5 if len(shown[0]) <= _NUMBERS else _SIZE // 2
    top = max((abs(v) for row in shown for v in row if math.isfinite(v)), default=0.0) or 1.0
    squares = [
        _square(name, i, j, v, top, size, numbers)
        for i, row in enumerate(shown)
        for j, v in enumerate(row)
    ]
    height = _SIZE if numbers else size
    w, h = len(shown[0]) * size, len(shown) * height
    cut = "" if len(shown) == len(rows) and len(shown[0]) == len(rows[0]) else " (its corner)"
    label = f"{name}, {len(rows)} by {len(rows[0])}{cut}"
    return Markup(
        '<figure class="grid"><svg role="img" aria-label="{}" width="{}" height="{}" '
        'viewBox="-1 -1 {} {}">{}</svg><figcaption>{}</figcaption></figure>'
    ).format(label, w + 2, h + 2, w + 2, h + 2, Markup("").join(squares), label)


def _square(name: str, i: int, j: int, v: float, top: float, width: int, numbers: bool) -> Markup:
    height = _SIZE if numbers else width
    text = f"{v:.3g}"
    if name == "mask":
        kind, strength, mark = ("seen", 0.75, "") if v else ("blocked", 1.0, "")
    elif not math.isfinite(v):
        kind, strength, mark = "nonfinite", 1.0, "\N{MULTIPLICATION SIGN}"
    else:
        kind = "error" if name == "error" else "positive" if v >= 0 else "negative"
        strength, mark = 0.08 + 0.72 * abs(v) / top, ""
    shown = text if numbers else mark
    label = (
        Markup("")
        if not shown
        else Markup('<text class="on-{}" x="{}" y="{}">{}</text>').format(
            kind, j * width + width / 2, i * height + height / 2, shown
        )
    )
    return Markup(
        '<g><title>{}[{},{}] = {}</title><rect class="{}" x="{}" y="{}" width="{}" height="{}" '
        'fill-opacity="{:.2f}"/>{}</g>'
    ).format(escape(name), i, j, text, kind, j * width, i * height, width, height, strength, label)


def _rows(values: Any) -> Sequence[Sequence[float]]:
    """``values`` as equally long rows of floats, or nothing: pictures come from a file."""
    if not isinstance(values, (list, tuple)):
        return ()
    rows = [row if isinstance(row, (list, tuple)) else [row] for row in values]
    if values and not isinstance(values[0], (list, tuple)):
        rows = [list(values)]
    try:
        found = [[float(v) for v in row] for row in rows]
    except (TypeError, ValueError):
        return ()
    return found if len({len(row) for row in found}) == 1 else ()
