"""What a model is to the commands: its configuration, layout, closed form, steps and presets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from assay.spec.models import layout as layouts
from assay.spec.models.closed_form import Terms
from assay.spec.models.config import Config
from assay.spec.models.costs import Steps
from assay.spec.models.layout import Layout, Size


@dataclass(frozen=True)
class Preset:
    """A configuration with a name."""

    name: str
    summary: str
    config: Config


@dataclass(frozen=True)
class Model:
    """One model.

    layout          (config) -> the ordered state
    terms           (config) -> the closed form of its count
    steps           (config, batch) -> what a forward pass writes and costs
    presets         the first one is the default
    decoding_state  (config, batch) -> scalars that one step of decoding hands to the next; None for
                    models without time
    extras          (config) -> further figures: (name, value, unit)
    """

    name: str
    summary: str
    config: type[Config]
    layout: Callable[[Any], Layout]
    terms: Callable[[Any], Terms]
    steps: Callable[[Any, Size], Steps]
    presets: tuple[Preset, ...]
    decoding_state: Callable[[Any, Size], Size] | None = None
    extras: Callable[[Any], tuple[tuple[str, Size, str], ...]] = lambda config: ()

    @property
    def unit(self) -> str:
        """What one row of a batch is counted in: tokens of a sequence, or examples."""
        return "token" if self.decoding_state else "example"

    def units(self, config: Any) -> Size:
        """How many of them one row of a batch holds."""
        return config.context if self.decoding_state else 1

    def preset(self, name: str) -> Preset:
        """The preset of this name; case and surrounding blanks do not matter."""
        wanted = name.strip().lower()
        for entry in self.presets:
            if entry.name == wanted:
                return entry
        valid = ", ".join(p.name for p in self.presets)
        raise KeyError(f"preset {name!r} of {self.name} does not exist; valid: {valid}")

    def initialise(
        self, config: Any, rng: np.random.Generator, dtype: Any = np.float64
    ) -> dict[str, np.ndarray]:
        """First values of every parameter by name, in the order of the state."""
        return layouts.initialise(self.layout(config), rng, dtype)
