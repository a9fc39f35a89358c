"""Recipe of decoding sessions of a whole model: a configuration, and a script of legal steps."""

from __future__ import annotations

import json

from assay.properties.context import Context
from assay.properties.draw import Draw, choice
from assay.properties.recipe import Recipe, Structure
from assay.properties.recipes.caches import EVERYTHING, draw_script, stream_length
from assay.properties.recipes.models import (
    BATCHES,
    gpt_fields,
    id_shapes,
    ids,
    legal_state,
    spoil,
    state,
)

CONTEXTS = (3, 1, 4, 6, 9)
CHUNKS = (1, 1, 2, 3)
"""Smaller than the contexts, so that there is a past to read."""


def session(
    draw: Draw, ctx: Context, actions: tuple[str, ...] = EVERYTHING, *, padded: bool = True
) -> Structure:
    """Sizes and attributes of a session of these actions on a course GPT."""
    # One row alone cannot swap its past.
    rows = draw(choice(*(BATCHES[1:] if "reorder" in actions else BATCHES)))
    fields = {**gpt_fields(draw), "context": draw(choice(*CONTEXTS))}
    script = draw_script(draw, rows, fields["context"], actions, chunks=CHUNKS)
    attributes = {"config": json.dumps(fields), "script": script}
    if padded and draw(choice(0, 1)):
        attributes["pads"] = tuple(draw(choice(0, 1, 2, 3, 7)) for _ in range(rows))
    return {"B": rows, "T": stream_length(script)}, attributes


SESSIONS: tuple[Recipe, ...] = (
    Recipe(
        "gpt_decode",
        session,
        id_shapes,
        special={"state": state, "ids": ids},
        legal={"state": legal_state},
        empties=("T",),
        spoil=spoil,
    ),
)
