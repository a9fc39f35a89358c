"""How near each backend came to its error bound: one inline SVG in the page's colours."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from assay.properties.results import Cell

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_INK = "#010203"
"""Stands for the page's text colour while matplotlib draws; no palette of ours holds it."""

_MARKERS = "os^DvPX*<>ph"
_CLOUD = 40
"""Scores drawn behind the worst one, for each cell: enough to see where they lie."""

_FLOOR = 1e-6
"""Scores below are drawn here: an exact result has score 0, which a log axis cannot show."""


def scores(cells: Sequence[Cell]) -> Markup:
    """Worst error / bound for each claim and backend on a log axis, over all scores seen."""
    own = [c for c in cells if c.worst > 0 and c.examples]
    if not own:
        return Markup("")
    import matplotlib as mpl
    from matplotlib.figure import Figure

    claims = sorted({c.claim for c in own}, reverse=True)
    series = sorted({(c.key.backend, c.key.mode) for c in own})
    style: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": "assay",
        "font.family": "sans-serif",
        "font.size": 9,
        "text.color": _INK,
        "axes.labelcolor": _INK,
        "axes.edgecolor": _INK,
        "xtick.color": _INK,
        "ytick.color": _INK,
    }
    with mpl.rc_context(style):
        figure = Figure(
            figsize=(9, 1.4 + 0.3 * len(claims) + 0.11 * len(series)), layout="constrained"
        )
        axes = figure.subplots()
        _draw(axes, own, claims, series)
        columns = 3 if len(series) > 2 else len(series)
        figure.legend(loc="outside lower center", ncols=columns, frameon=False)
        out = io.StringIO()
        figure.savefig(out, format="svg", transparent=True, metadata={"Date": None})
    return _inline(out.getvalue())


def _draw(
    axes: Axes, cells: Sequence[Cell], claims: list[str], series: list[tuple[str, str]]
) -> None:
    from matplotlib import colormaps

    palette = colormaps["tab10"].colors  # type: ignore[attr-defined]
    for number, (backend, mode) in enumerate(series):
        own = [c for c in cells if (c.key.backend, c.key.mode) == (backend, mode)]
        shift = 0.5 * ((number + 0.5) / len(series) - 0.5)
        colour = palette[number % len(palette)]
        cloud = [
            (max(s, _FLOOR), claims.index(c.claim) + shift)
            for c in own
            for s in _thinned(c)
            if s > 0
        ]
        if cloud:
            axes.scatter(
                [x for x, _ in cloud],
                [y for _, y in cloud],
                s=4,
                color=colour,
                alpha=0.15,
                linewidths=0,
            )
        worst = [(min(max(c.worst, _FLOOR), 1e6), claims.index(c.claim) + shift) for c in own]
        name = backend if mode == "default" else f"{backend} ({mode})"
        axes.scatter(
            [x for x, _ in worst],
            [y for _, y in worst],
            s=26,
            color=colour,
            marker=_MARKERS[number % len(_MARKERS)],
            label=name.replace("$", r"\$"),
            linewidths=0,
            zorder=3,
        )
    axes.set_xscale("log")
    axes.axvline(1.0, color=_INK, linewidth=1, linestyle="--")
    axes.set_yticks(range(len(claims)), claims)
    axes.set_ylim(-0.6, len(claims) - 0.4)
    axes.set_xlabel("error / bound (dashed: the bound; right of it is a finding)")
    axes.grid(axis="both", color=_INK, alpha=0.12, linewidth=0.6)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(length=0)


def _thinned(cell: Cell) -> list[float]:
    ordered = sorted(cell.scores)
    return ordered[:: len(ordered) // _CLOUD + 1]


def _inline(svg: str) -> Markup:
    """The drawing without its XML head, scalable, and in the page's text colour."""
    body = svg[svg.index("<svg") :].replace(_INK, "currentColor")
    body = re.sub(r'<svg ([^>]*?)width="[^"]*" height="[^"]*"', r"<svg \1", body, count=1)
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    label = '<svg role="img" aria-label="worst error over bound by claim and backend" class="plot" '
    # matplotlib escapes what it writes, labels included.
    return Markup(body.replace("<svg ", label, 1))
