"""How each model is trained by ``assay train``: on which data, by which steps, below which bar."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from assay.impl.training import arrays, bars, burgers, series, shapes, text
from assay.impl.training.data import Problem
from assay.spec.optimizers.update import Training

ALIASES = {"rnn": "rnn_lm", "lstm": "lstm_lm", "mamba": "mamba_lm"}
"""Short names of models of the catalogue."""


@dataclass(frozen=True)
class Bar:
    """A loss that the trained model has to be below on examples that are held out.

    reason  what reaches it without learning
    """

    loss: float
    reason: str


class Subject(Protocol):
    """What a kind of model is trained on and judged by."""

    @property
    def op(self) -> str:
        """The op of the catalogue that says what a step is."""
        ...

    @property
    def loss(self) -> str:
        """What the loss is, in words."""
        ...

    def problem(self, config: Any, seed: int, file: Path | None) -> Problem:
        """Examples; DataError says why there are none."""
        ...

    def bar(self, problem: Problem) -> Bar:
        """Where the loss has to be."""
        ...

    def figures(self, problem: Problem, found: np.ndarray) -> dict[str, float]:
        """Further figures of the answers for the examples that are held out."""
        ...


class Text:
    """The next character of a text."""

    op = "language_step"
    loss = "cross-entropy in nats per character"

    def problem(self, config: Any, seed: int, file: Path | None) -> Problem:
        """Windows of the grammar's text, or of a corpus."""
        if file is None:
            return text.generated(seed, config.vocabulary, config.context)
        return text.problem(str(file), text.read(file), config.vocabulary, config.context)

    def bar(self, problem: Problem) -> Bar:
        """The frequencies of single characters."""
        least = bars.without_context(problem.held.targets)
        return Bar(least, "the frequencies of single characters, without any context")

    def figures(self, problem: Problem, found: np.ndarray) -> dict[str, float]:
        """How many next characters are the likeliest one."""
        return {
            "share of next characters told": float(
                (found.argmax(-1) == problem.held.targets).mean()
            )
        }


class Images:
    """Which of V classes an image shows, by the square loss (``spec.models.training``)."""

    op = "regression_step"
    loss = "mean square error of the classes' answers"

    def problem(self, config: Any, seed: int, file: Path | None) -> Problem:
        """Coloured shapes, or images of the user's."""
        if file is None:
            return shapes.generated(seed, config.channels, config.spatial, config.classes)
        image = (config.channels, *config.spatial)
        return arrays.read(file, image, (), config.classes)

    def bar(self, problem: Problem) -> Bar:
        """The frequencies of the classes."""
        return Bar(bars.constant(problem.held.targets), "the classes' frequencies for every image")

    def figures(self, problem: Problem, found: np.ndarray) -> dict[str, float]:
        """How many images are told."""
        return {"accuracy": bars.accuracy(found, problem.held.targets)}


class Series:
    """Numbers that follow other numbers in time."""

    op = "regression_step"
    loss = "mean square error"

    def problem(self, config: Any, seed: int, file: Path | None) -> Problem:
        """Pushed oscillators, or series of the user's."""
        if file is None:
            return series.generated(seed, config.inputs, config.outputs, config.context)
        shape = (config.context,)
        return arrays.read(file, (*shape, config.inputs), (*shape, config.outputs))

    def bar(self, problem: Problem) -> Bar:
        """What needs no memory."""
        least = bars.without_memory(*problem.held)
        return Bar(least, "the best affine function of the present input, without memory")

    def figures(self, problem: Problem, found: np.ndarray) -> dict[str, float]:
        """The error relative to the targets."""
        return {"relative error": bars.relative_error(found, problem.held.targets)}


class Fields:
    """A field from a field on the same grid."""

    op = "regression_step"
    loss = "mean square error"

    def problem(self, config: Any, seed: int, file: Path | None) -> Problem:
        """Burgers' equation, or fields of the user's."""
        if file is None:
            return burgers.generated(seed, config.spatial)
        field = (*config.spatial, 1)
        return arrays.read(file, field, field)

    def bar(self, problem: Problem) -> Bar:
        """The same field for all."""
        return Bar(bars.constant(problem.held.targets), "the mean field, whatever the input")

    def figures(self, problem: Problem, found: np.ndarray) -> dict[str, float]:
        """Relative errors: of the answers, and of the mean of what was learnt."""
        targets = problem.held.targets
        mean = np.broadcast_to(problem.learnt.targets.mean(axis=0), targets.shape)
        return {
            "relative error": bars.relative_error(found, targets),
            "relative error of the mean field": bars.relative_error(mean, targets),
        }


@dataclass(frozen=True)
class Task:
    """How a model is trained where nothing else is said."""

    subject: Subject
    how: Training
    steps: int
    batch: int


TASKS: Mapping[str, Task] = {
    "char_gpt": Task(Text(), Training(lr=3e-3), 300, 32),
    "gpt": Task(Text(), Training(lr=1e-3), 150, 4),
    "rnn_lm": Task(Text(), Training(lr=1e-2), 400, 32),
    "lstm_lm": Task(Text(), Training(lr=1e-2), 400, 32),
    "mamba_lm": Task(Text(), Training(lr=1e-2), 200, 32),
    "resnet": Task(Images(), Training(lr=1e-2), 800, 32),
    "vit": Task(Images(), Training(lr=1e-2), 1000, 32),
    "lstm_regression": Task(Series(), Training(lr=1e-2), 400, 32),
    "fno": Task(Fields(), Training(optimizer="adam", lr=5e-3, weight_decay=0.0), 800, 16),
}
"""They take seconds on two cores."""
