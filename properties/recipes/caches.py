"""Recipe of decoding sessions: a state machine whose script Hypothesis draws."""

from __future__ import annotations

from typing import Any

import numpy as np

from assay.properties.case import Case
from assay.properties.context import Context
from assay.properties.draw import Draw, choice
from assay.properties.recipe import Inputs, Recipe, Structure

CHUNKS = (1, 2, 3, 4, 5, 7, 8, 16, 17)
SLOTS = (1, 2, 3, 5, 8, 16, 17, 33, 48)
LINES = (1, 2, 4, 6, 8, 10)
MOST = 96
"""Tokens of one stream."""

EVERYTHING = ("append", "append", "overflow", "reorder", "reset")


def draw_script(
    draw: Draw,
    rows: int,
    capacity: int,
    actions: tuple[str, ...],
    *,
    rolling: bool = False,
    chunks: tuple[int, ...] = CHUNKS,
) -> tuple[str, ...]:
    """Steps that are legal one after the other, a first chunk in front; ``chunks``: their sizes.

    Where no token fits, something else is done than to append; and where one does, the last step
    appends, so that what the others did is read.
    """
    script: list[str] = []
    others = tuple(a for a in actions if a != "append")
    length = total = 0
    lines = draw(choice(*LINES))
    while len(script) < lines:
        free = MOST if rolling else capacity - length
        last = len(script) in (0, lines - 1)
        action = "append" if last else draw(choice(*actions))
        if action == "append" and not free:
            if not others:
                break
            action = draw(choice(*others))
        if action == "append":
            count = min(draw(choice(*chunks)), free)
        elif action == "overflow":
            count = free + draw(choice(1, 2, 5))
        else:
            count = 0
        if total + count > MOST:
            break
        total += count
        if action == "append":
            length += count
            script.append(f"append {count}")
        elif action == "overflow":
            script.append(f"overflow {count}")
        elif action == "reorder":
            order = " ".join(str(draw(choice(*range(rows)))) for _ in range(rows))
            script.append(f"reorder {order}")
        elif action == "reset":
            length = 0
            script.append("reset")
    return tuple(script)


def stream_length(script: tuple[str, ...]) -> int:
    """Tokens that a script uses up."""
    words = [line.split() for line in script]
    return sum(int(w[1]) for w in words if w[0] in ("append", "overflow"))


def draw_sizes(draw: Draw, ctx: Context) -> dict[str, int]:
    """All sizes but the length of the stream."""
    groups = draw(choice(1, 2, 3)) if ctx.contract.grouped_heads else 1
    kv_heads, width = draw(choice(1, 2, 3)), draw(choice(1, 2, 3, 4, 8, 16))
    value_width = draw(choice(width, 1, 3, 8)) if ctx.contract.value_width else width
    return {
        "Nl": draw(choice(1, 2, 3)),
        "B": draw(choice(1, 2, 3, 2)),
        "H": kv_heads * groups,
        "Hkv": kv_heads,
        "D": width,
        "Dv": value_width,
    }


def session(
    draw: Draw,
    ctx: Context,
    actions: tuple[str, ...] = EVERYTHING,
    *,
    rolling: bool = False,
    padded: bool = True,
) -> Structure:
    """Sizes and attributes of a session of these actions: of chunks that may fill all slots at
    once, or of small ones, so that there is a past when something else happens.
    """
    dims, capacity = draw_sizes(draw, ctx), draw(choice(*SLOTS))
    if rolling:
        actions = tuple(a for a in actions if a != "overflow")
    most = draw(choice(capacity, max(1, capacity // 3)))
    chunks = tuple(c for c in CHUNKS if c <= most) if not rolling else CHUNKS
    script = draw_script(draw, dims["B"], capacity, actions, rolling=rolling, chunks=chunks)
    attributes: dict[str, Any] = {"script": script, "capacity": capacity, "rolling": rolling}
    if padded and not rolling and ctx.takes("pads") and draw(choice(0, 1)):
        attributes["pads"] = tuple(draw(choice(0, 1, 2, 3, 7)) for _ in range(dims["B"]))
    return {**dims, "T": stream_length(script)}, attributes


def _any_session(draw: Draw, ctx: Context) -> Structure:
    return session(draw, ctx, rolling=ctx.takes("rolling") and draw(choice(False, False, True)))


def _shapes(case: Case) -> dict[str, tuple[int, ...]]:
    d = case.dims
    keys = (d["Nl"], d["B"], d["Hkv"], d["T"])
    return {
        "q": (d["Nl"], d["B"], d["H"], d["T"], d["D"]),
        "k": (*keys, d["D"]),
        "v": (*keys, d["Dv"]),
    }


def _longer(array: np.ndarray, axis: int) -> np.ndarray:
    return np.concatenate([array, np.take(array, [-1], axis=axis)], axis=axis)


def _spoil(case: Case, inputs: Inputs) -> dict[str, Inputs]:
    k, v = inputs["k"], inputs["v"]
    return {
        "k wider than q": {**inputs, "k": _longer(k, 4)},
        "more keys than values": {**inputs, "k": _longer(k, 3)},
        "another number of layers in k and v": {**inputs, "k": _longer(k, 0), "v": _longer(v, 0)},
    }


CACHES: tuple[Recipe, ...] = (
    Recipe("kv_cache", _any_session, _shapes, empties=("B", "T"), spoil=_spoil),
)
