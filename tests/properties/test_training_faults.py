"""The classical mistakes in a training step, each of which ``model.one_step`` finds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from assay.properties.campaign import run_backend
from assay.properties.training_properties import STEPS
from assay.spec.models.flat import configure
from assay.spec.models.training import train
from assay.spec.ops import op
from assay.spec.ops.training import how
from assay.spec.optimizers.update import Moments, Training, Update, update
from tests.properties.spec_backend import Arrays, SpecBackend, Spoil


def _eps_in_the_root(
    given: Training, taken: int, state: Any, gradient: Any, moments: Moments
) -> tuple[Any, Moments]:
    if given.optimizer == "sgd":
        return update(given, taken, state, gradient, moments)
    _, after = update(given, taken, state, gradient, moments)
    left = [1 - beta ** (taken + 1) for beta in given.betas]
    decayed = state * (1 - given.lr * given.weight_decay * (given.optimizer == "adamw"))
    spread = np.sqrt(after.second / left[1] + given.eps)
    return decayed - given.lr * after.first / left[0] / spread, after


def _coupled_decay(given: Training, *rest: Any) -> tuple[Any, Moments]:
    """AdamW as Adam with the decay in its gradient."""
    coupled = "adam" if given.optimizer == "adamw" else given.optimizer
    return update(replace(given, optimizer=coupled), *rest)


def _swapped_betas(given: Training, *rest: Any) -> tuple[Any, Moments]:
    return update(replace(given, betas=given.betas[::-1]), *rest)


def _uncorrected(
    given: Training, taken: int, state: Any, gradient: Any, moments: Moments
) -> tuple[Any, Moments]:
    """As if the means had run for a long time."""
    return update(given, taken + 1000, state, gradient, moments)


def _forgetful(
    given: Training, taken: int, state: Any, gradient: Any, moments: Moments
) -> tuple[Any, Moments]:
    """The means start from 0 in each step."""
    return update(given, taken, state, gradient, Moments(state * 0, state * 0))


def _uphill(
    given: Training, taken: int, state: Any, gradient: Any, moments: Moments
) -> tuple[Any, Moments]:
    return update(given, taken, state, -gradient, moments)


def _by(step: Update) -> Spoil:
    def spoil(backend: SpecBackend, name: str, call: dict[str, Any], right: Arrays) -> Arrays:
        given = {a.name: call.get(a.name, a.default) for a in op(name).attributes}
        config = configure(given["model"], given["config"])
        _, read, targets = (i.name for i in op(name).inputs)
        batch = call["state"], call[read], call[targets]
        _, state = train(given["model"], config, *batch, how(given), update=step)
        return {**right, "state": state}

    return spoil


@pytest.mark.parametrize(
    "step",
    [_eps_in_the_root, _coupled_decay, _swapped_betas, _uncorrected, _forgetful, _uphill],
)
def test_a_mistake_in_the_optimizer_is_found(step: Update) -> None:
    backend = SpecBackend(*STEPS, spoil=_by(step))
    result = run_backend(backend, claims=("model.one_step",), dtypes=("float64",), profile="ci")

    assert "violated" in {cell.verdict for cell in result.cells}


def _decays_all(backend: SpecBackend, name: str, call: dict[str, Any], right: Arrays) -> Arrays:
    """What is stored and not trained decays like all the rest."""
    kept = right["state"] == call["state"]
    return {**right, "state": np.where(kept, 0.999 * right["state"], right["state"])}


def test_a_decay_of_what_is_not_trained_is_found() -> None:
    backend = SpecBackend("language_step", spoil=_decays_all)
    result = run_backend(backend, claims=("model.one_step",), dtypes=("float64",), profile="ci")

    assert [cell.verdict for cell in result.cells] == ["violated"]
