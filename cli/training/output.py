"""What ``assay train`` prints, and the same for a program."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from importlib import metadata
from typing import Any

from assay.cli import console
from assay.cli.layout import print_counts, print_title
from assay.cli.training.checks import FirstLoss, StepCheck
from assay.cli.training.learning import Outcome
from assay.cli.training.plan import Run, Used
from assay.cli.versions import machine, own_version
from assay.impl.training.data import Problem
from assay.properties.properties import PROPERTIES
from assay.properties.results import plain
from assay.spec.claims import claim


def show_plan(run: Run, problem: Problem, used: Sequence[Used], step: StepCheck) -> None:
    """All that is known before training."""
    print_title(run.chosen)
    print_counts(run.chosen)
    console.line()
    _show_data(run, problem)
    _show_contracts(used)
    console.line(f"model.one_step: {claim('model.one_step').sentence}")
    console.line(
        f"{_word(step.held)} by this trainer on a small {run.name} in float64: {step.bounded} of "
        f"{step.numbers} numbers have a bound, the largest error is {step.worst:.2g} of it"
    )


def _word(held: bool) -> str:
    return "held" if held else "failed"


def _show_data(run: Run, problem: Problem) -> None:
    how, task = run.task.how, run.task
    symbols = f", {len(problem.alphabet)} distinct characters" if problem.alphabet else ""
    console.line(
        f"data: {problem.origin}{symbols}; {len(problem.learnt.inputs):,} examples to learn from, "
        f"{len(problem.held.inputs)} held out; seed {run.seed}"
    )
    console.line(
        f"training: {task.steps} steps of {how.optimizer} in float32, batch {task.batch}, "
        f"rate {how.lr:g}, betas {how.betas[0]:g} and {how.betas[1]:g}, eps {how.eps:g}, "
        f"decay {how.weight_decay:g}"
    )


def _show_contracts(used: Sequence[Used]) -> None:
    rows = [
        (
            use.backend,
            use.op,
            use.contract.provider,
            use.contract.device,
            use.contract.reduction,
            ", ".join(use.contract.dtypes),
            families(p.claim for p in PROPERTIES if use.op in p.ops),
        )
        for use in used
    ]
    columns = ("contract", "op", "provider", "device", "reduction", "tested in", "by the claims")
    console.line()
    console.table("Contracts that are used: declared, not proved", columns, rows)


def families(claims: Iterable[str]) -> str:
    """Each claim once; those of hygiene, which every op has, as one word.

    >>> families(["model.layout", "hygiene.shape", "hygiene.dtype"])
    'model.layout, hygiene.*'
    """
    names = ("hygiene.*" if name.startswith("hygiene.") else name for name in claims)
    return ", ".join(dict.fromkeys(names))


def show_outcome(run: Run, problem: Problem, outcome: Outcome) -> None:
    """The losses, where they have to be, and what the model can do."""
    console.line()
    if len(outcome.losses) < run.task.steps:
        console.line(
            f"stopped: the loss of step {len(outcome.losses)} is {outcome.losses[-1]}; "
            f"a smaller rate than --lr={run.task.how.lr:g} may help"
        )
    if outcome.first is not None:
        _show_first(outcome.first)
    console.line(
        f"loss of what is held out, {run.task.subject.loss}: {outcome.before:.4f} before, "
        f"{outcome.after:.4f} after"
    )
    below = "is below it" if outcome.after < outcome.bar.loss else "is not below it"
    console.line(f"bar: {outcome.bar.loss:.4f}, {outcome.bar.reason}; the loss {below}")
    if problem.floor is not None:
        console.line(f"floor: {problem.floor:.4f}, the entropy of the grammar a character")
    for name, value in outcome.figures.items():
        console.line(f"{name}: {value:.4f}")
    if outcome.sample:
        console.line("sample:")
        for text in outcome.sample.split("\n"):
            console.block(f"  {console.plain(text)}")


def _show_first(first: FirstLoss) -> None:
    console.line(
        f"first state, every symbol as often the target: loss {first.loss:.4f}; theory: from "
        f"ln V = {first.low:.4f} to {first.high:.4f}; {_word(first.held)}"
    )


def log(run: Run, problem: Problem, step: StepCheck, outcome: Outcome) -> str:
    """The result as JSON; infinity and NaN, which JSON lacks, are texts."""
    document: dict[str, Any] = {
        "model": run.name,
        "title": run.chosen.title,
        "config": asdict(run.chosen.config),
        "seed": run.seed,
        "versions": {
            "assay": own_version(),
            "machine": machine(),
            **{name: metadata.version(name) for name in ("numpy", "torch")},
        },
        "data": {
            "origin": problem.origin,
            "learnt": len(problem.learnt.inputs),
            "held": len(problem.held.inputs),
            "alphabet": problem.alphabet,
            "floor": problem.floor,
        },
        "training": {**asdict(run.task.how), "steps": run.task.steps, "batch": run.task.batch},
        "one_step": {**asdict(step), "held": step.held},
        **asdict(outcome),
        "met": outcome.met,
    }
    return json.dumps(plain(document), indent=1, allow_nan=False) + "\n"
