"""What a training is to be, from the words of a command line; refused before it costs anything."""

from __future__ import annotations

import os
from argparse import Namespace
from dataclasses import dataclass, replace
from pathlib import Path

from assay.cli import configuration
from assay.cli.command import UsageError
from assay.cli.configuration import Chosen
from assay.cli.training.tasks import ALIASES, TASKS, Task
from assay.impl.contract import Contract
from assay.impl.loading import resolve
from assay.impl.training.data import DataError, Problem

COPIES = 8
"""Times the memory of the parameters, 4 bytes each: them, their gradients and two means, and two
numbers of 8 bytes while first values are drawn.
"""


@dataclass(frozen=True)
class Run:
    """A training that nothing speaks against."""

    chosen: Chosen
    task: Task
    seed: int

    @property
    def name(self) -> str:
        """The model's name in the catalogue."""
        return self.chosen.model.name


@dataclass(frozen=True)
class Used:
    """A backend that takes part, the op of it that says what it does, and what it declares."""

    backend: str
    op: str
    contract: Contract


def plan(args: Namespace) -> Run:
    """The training that the words ask for. UsageError says what speaks against it."""
    asked: str = args.model
    name = ALIASES.get(asked, asked)
    if name not in TASKS:
        raise configuration.unknown("model to train", asked, [*TASKS, *ALIASES])
    for option in ("steps", "batch"):
        if getattr(args, option) == 0:
            raise UsageError(f"--{option}=0 must be a whole number; valid: 1 or more")
    task = TASKS[name]
    task = replace(
        task,
        how=task.how if args.lr is None else replace(task.how, lr=args.lr),
        steps=args.steps or task.steps,
        batch=args.batch or task.batch,
    )
    run = Run(configuration.choose(name, args.preset, args.settings), task, args.seed)
    _check_memory(run)
    return run


def _check_memory(run: Run) -> None:
    """Refuse what this machine cannot hold."""
    from assay.spec.models.summary import figures

    found = {f.name: f.value for f in figures(run.chosen.model, run.chosen.config, run.task.batch)}
    needed = COPIES * found["parameter memory"] + found["activations"]
    present = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if needed > present:
        raise UsageError(
            f"{run.chosen.title} with --batch={run.task.batch} needs {needed / 2**30:,.1f} GiB; "
            f"valid: what fits in the {present / 2**30:,.1f} GiB of this machine (assay layout "
            f"{run.name} shows what sizes cost)"
        )


def problem_of(run: Run, file: Path | None) -> Problem:
    """The data; UsageError says why it cannot be learnt from."""
    try:
        return run.task.subject.problem(run.chosen.config, run.seed, file)
    except DataError as error:
        raise UsageError(str(error)) from error


def contracts_of(run: Run) -> tuple[Used, ...]:
    """Whose modules are trained, and whose step is taken. Unavailable where torch is missing."""
    ops = {"torch.models": run.name, "torch.training": run.task.subject.op}
    return tuple(Used(n, op, resolve(n).load().effective_contract()) for n, op in ops.items())
