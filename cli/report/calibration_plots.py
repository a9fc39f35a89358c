"""Plots of a calibration, as SVG files beside its page."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING, Any

from assay.zoo.calibration.calibration import Calibration
from assay.zoo.calibration.rules import ASSAY, RULES
from assay.zoo.calibration.sensitivity import COARSEST, EXTENTS, FINEST

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "assay",
    "font.family": "sans-serif",
    "font.size": 9,
}
_MARKERS = dict(zip(EXTENTS, "os^D", strict=True))
_COLOURS = dict(zip(EXTENTS, ("#1b6ca8", "#c8553d", "#588157", "#8e6c8a"), strict=True))
_NAMES = [rule.name for rule in reversed(RULES)]


def errors(calibration: Calibration) -> str:
    """For each dtype the smallest error that each rule sees on typical inputs: a dot for each op,
    and a mark for the median over ops.
    """
    dtypes = [
        d for d in calibration.plan.dtypes if any(t.dtype == d for t in calibration.thresholds)
    ]

    def draw(figure: Figure) -> None:
        panels = figure.subplots(1, len(dtypes), sharey=True, squeeze=False)[0]
        for axes, dtype in zip(panels, dtypes, strict=True):
            _errors(axes, calibration, dtype)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)

    return _svg(draw, 3.4 * max(len(dtypes), 1) + 1.0, 3.6) if dtypes else ""


def _errors(axes: Axes, calibration: Calibration, dtype: str) -> None:
    for place, extent in enumerate(EXTENTS):
        shift = 0.18 * (1.5 - place)
        for row, rule in enumerate(_NAMES):
            seen = [_drawn(e) for e in calibration.errors(rule, dtype, "typical", extent)]
            axes.scatter(seen, [row + shift] * len(seen), s=5, alpha=0.3, color=_COLOURS[extent])
            middle = calibration.typical(rule, dtype, "typical", extent)
            if not math.isnan(middle):
                axes.scatter(
                    [_drawn(middle)],
                    [row + shift],
                    s=30,
                    marker=_MARKERS[extent],
                    color=_COLOURS[extent],
                    label=f"{extent}, median over ops" if row == 0 else None,
                )
    axes.set_xscale("log")
    axes.set_yticks(range(len(_NAMES)), _NAMES)
    axes.set_title(dtype, fontsize=9)
    axes.set_xlabel("smallest error seen")
    axes.grid(alpha=0.25, linewidth=0.5)
    axes.spines[["top", "right"]].set_visible(False)


def _drawn(value: float) -> float:
    """An error that is never seen is drawn at the coarsest that was tried."""
    return min(max(value, 2.0**FINEST), 2.0**COARSEST)


def faults(calibration: Calibration) -> str:
    """How many of the planted faults each rule catches, and how many of the hard ones."""
    if not calibration.caught:
        return ""
    names = ["assay's bounds alone" if n == ASSAY.name else n for n in _NAMES]
    names.append("assay, a campaign")

    def shares(*, hard: bool) -> list[float]:
        found = [calibration.found(n, hard=hard) for n in _NAMES]
        return [100.0 * n / max(of, 1) for n, of in (*found, calibration.hunted(hard=hard))]

    def draw(figure: Figure) -> None:
        axes = figure.subplots()
        above, below = ([i + shift for i in range(len(names))] for shift in (0.19, -0.19))
        axes.barh(above, shares(hard=False), 0.36, color="#1b6ca8", label="of all")
        axes.barh(below, shares(hard=True), 0.36, color="#c8553d", label="of the hard ones")
        axes.set_yticks(range(len(names)), names)
        axes.set_xlim(0, 100)
        axes.set_xlabel("planted faults caught, %")
        axes.grid(axis="x", alpha=0.25, linewidth=0.5)
        axes.spines[["top", "right"]].set_visible(False)
        figure.legend(loc="outside lower center", ncols=2)

    return _svg(draw, 7.0, 3.6)


def _svg(draw: Any, width: float, height: float) -> str:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
        draw(figure)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None})
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"
