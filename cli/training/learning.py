"""A model learns: its steps, its losses before and after, and what it can do then."""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from assay.cli import console
from assay.cli.listener import bar
from assay.cli.training.checks import FirstLoss, check_first_loss, options_of
from assay.cli.training.plan import Run
from assay.cli.training.tasks import Bar
from assay.impl.training.data import Problem
from assay.spec.models.flat import pack

if TYPE_CHECKING:
    from assay.impl.training.torch_trainer import TorchTrainer

SAMPLE = 200
"""Characters that a language model writes in the end."""

_EVERY = 10.0
"""Seconds between progress lines where there is no terminal."""

Show = Callable[[list[float]], None]


@dataclass(frozen=True)
class Outcome:
    """What a training came to.

    losses   of the batch, before each step
    before   the loss of examples that are held out, in the first state; ``after``: in the last
    first    what theory says of the first state of a language model
    figures  further figures of the answers
    """

    losses: tuple[float, ...]
    before: float
    after: float
    bar: Bar
    first: FirstLoss | None
    figures: dict[str, float]
    sample: str = ""

    @property
    def met(self) -> bool:
        """Whether the losses lie where theory puts them."""
        return self.after < self.bar.loss and (self.first is None or self.first.held)


def learn(run: Run, problem: Problem) -> Outcome:
    """Take the steps, each on examples drawn by the seed; a loss that is not finite ends them."""
    trainer, config, held = trainer_of(run), run.chosen.config, problem.held
    before = trainer.loss(held)
    text = problem.alphabet != ""
    first = check_first_loss(run.name, config, trainer, held.inputs) if text else None
    rng = np.random.default_rng(run.seed)
    losses: list[float] = []
    with _progress(run.task.steps) as show:
        while len(losses) < run.task.steps and all(map(math.isfinite, losses[-1:])):
            rows = rng.integers(len(problem.learnt.inputs), size=run.task.batch)
            losses.append(trainer.step(problem.learnt.rows(rows)))
            show(losses)
    subject = run.task.subject
    return Outcome(
        losses=tuple(losses),
        before=before,
        after=trainer.loss(held),
        bar=subject.bar(problem),
        first=first,
        figures=subject.figures(problem, trainer.outputs(held.inputs)),
        sample=write(trainer, problem.alphabet, config, rng) if text else "",
    )


def trainer_of(run: Run) -> TorchTrainer:
    """The model in its first state."""
    from assay.impl.training.torch_trainer import TorchTrainer

    model, config, how = run.chosen.model, run.chosen.config, run.task.how
    first = model.initialise(config, np.random.default_rng(run.seed), np.float32)
    return TorchTrainer(
        run.name,
        json.dumps(asdict(config)),
        pack(run.name, config, first),
        optimizer=how.optimizer,
        options=options_of(how),
        seed=run.seed,
    )


def write(trainer: TorchTrainer, alphabet: str, config: Any, rng: np.random.Generator) -> str:
    """A text of the model's own, drawn character by character, as after the end of a line."""
    ids = [max(alphabet.find("\n"), 0)]
    for _ in range(SAMPLE):
        seen = np.array([ids[-config.context :]])
        logits = trainer.outputs(seen)[0, -1, : len(alphabet)].astype(np.float64)
        if not np.isfinite(logits).all():
            break
        weights = np.exp(logits - logits.max())
        ids.append(int(rng.choice(len(alphabet), p=weights / weights.sum())))
    return "".join(alphabet[i] for i in ids[1:])


@contextmanager
def _progress(total: int) -> Iterator[Show]:
    """Shows the losses so far: as a bar on a terminal, else as a line now and then."""
    if not sys.stderr.isatty():
        yield _lines(total)
        return
    with bar() as progress:
        task = progress.add_task("steps", total=total)
        yield lambda losses: progress.update(
            task, completed=len(losses), description=f"steps, loss {losses[-1]:.4f}"
        )


def _lines(total: int) -> Show:
    last = time.monotonic()

    def show(losses: list[float]) -> None:
        nonlocal last
        if time.monotonic() - last >= _EVERY:
            last = time.monotonic()
            console.note(f"{len(losses)} of {total} steps, loss {losses[-1]:.4f}")

    return show
