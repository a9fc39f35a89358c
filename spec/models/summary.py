"""The figures of one configuration: counts, operations, bytes, and what else its model reports."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from assay.spec.models.costs import (
    activation_scalars,
    forward_flops,
    training_flops,
)
from assay.spec.models.layout import Size, product, stored, trainable
from assay.spec.models.model import Model


@dataclass(frozen=True)
class Figure:
    """One number with a name; ``unit`` is empty for a count."""

    name: str
    value: Size
    unit: str = ""


def figures(model: Model, config: Any, batch: Size = 1, *, itemsize: int = 4) -> tuple[Figure, ...]:
    """Everything that is worth a comparison, for elements of ``itemsize`` bytes.

    >>> from assay.spec.models.catalogue import model
    >>> [f.value for f in figures(model("gpt"), model("gpt").config()) if "cache" in f.name]
    [524288]
    """
    layout, steps = model.layout(config), model.steps(config, batch)
    units = batch * model.units(config)
    forward, training = forward_flops(steps), training_flops(steps)
    found = [
        Figure("trainable parameters", trainable(layout)),
        Figure("stored scalars", stored(layout)),
        Figure("parameter memory", itemsize * stored(layout), "bytes"),
        Figure("forward", forward, "FLOPs"),
        Figure(f"forward per {model.unit}", forward // units, "FLOPs"),
        Figure("forward and backward", training, "FLOPs"),
        Figure(f"forward and backward per {model.unit}", training // units, "FLOPs"),
        Figure("activations", itemsize * activation_scalars(steps), "bytes"),
    ]
    for step in steps:
        if step.name.endswith("attention.scores"):
            found += [
                Figure("score matrix of one head", product(step.writes[-2:])),
                Figure("score matrices of one layer", product(step.writes)),
            ]
    if model.decoding_state:
        attends = any(s.kind == "attention" for s in steps)
        name = "key and value cache" if attends else "decoding state"
        found.append(Figure(name, itemsize * model.decoding_state(config, batch), "bytes"))
    return (*found, *(Figure(*entry) for entry in model.extras(config)))
