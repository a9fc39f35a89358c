"""Values that the shrinker tries stay in the property's domain: a sound backend does not fail on
them.
"""

from __future__ import annotations

import contextlib
import random
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from assay.impl.backends.numpy_float32 import NumpyFloat32
from assay.impl.session import Session, open_session
from assay.properties.campaign import run_backend
from assay.properties.case import Case, Materials, as_it_is
from assay.properties.context import Context, context_of
from assay.properties.experiment import Close, Experiment
from assay.properties.properties import PROPERTIES, find
from assay.properties.property import Property
from assay.properties.recipes import RECIPES
from assay.properties.shrink import simplify_values
from assay.properties.trial import Bench, Trial
from assay.spec.ops import op
from tests.properties.saboteurs_models import WHOLE
from tests.properties.saboteurs_training import TRAINING
from tests.properties.spec_backend import SpecBackend

TRIES = 8
"""Candidates of each case: enough to come to zeros, ones, signs and halves of some arrays."""

_UNCHECKED = (
    HealthCheck.too_slow,
    HealthCheck.data_too_large,
    HealthCheck.filter_too_much,
    HealthCheck.large_base_example,
)

ATTENDED = 2
"""Ops of each part of hygiene, which are asked of every op."""


class _Enough(Exception):
    """As many candidates were tried as are wanted."""


def _ops(prop: Property) -> tuple[str, ...]:
    if not prop.id.startswith("hygiene."):
        return prop.ops
    return tuple(random.Random(prop.id).sample(sorted(prop.ops), ATTENDED))


def _session(name: str) -> Session:
    backend = NumpyFloat32() if name in ("attention", "masked_softmax") else SpecBackend()
    return open_session(backend, isolate=False)


def _context(prop: Property, name: str, session: Session) -> Context:
    dtype = "float64" if prop.id in (*WHOLE, *TRAINING) else "float32"
    return context_of(op(name), session.description, dtype, session.description.contract.modes[0])


def _stray(prop: Property, name: str, examples: int = 2) -> list[str]:
    """What fails of a sound backend on values that the shrinker may come to."""
    found: list[str] = []
    with _session(name) as session:
        ctx = _context(prop, name, session)
        if prop.excluded(ctx) is not None:
            return []
        bench = Bench(prop, ctx, session)
        dice = random.Random(f"{prop.id} {name}")

        @seed(0)
        @settings(
            max_examples=examples,
            database=None,
            deadline=None,
            suppress_health_check=_UNCHECKED,
        )
        @given(st.composite(lambda draw: prop.draw(draw, ctx))())
        def shrunk(case: Case) -> None:
            first = bench.attempt(case)
            assert not first.failed
            if first.judgement.failure is None:
                found.extend(_walk(bench, first, dice))

        shrunk()
    return found


def _walk(bench: Bench, trial: Trial, dice: random.Random) -> list[str]:
    """Take some of the shrinker's candidates for failing ones; the messages of those that do."""
    tried: list[Trial] = []

    def fails(case: Case) -> bool:
        if len(tried) == TRIES:
            raise _Enough
        tried.append(bench.attempt(case))
        return len(tried) == 1 or dice.random() < 0.6

    with contextlib.suppress(_Enough):
        simplify_values(trial.case, trial.made.arrays, trial.made.fits, fails, seconds=600.0)
    return [
        f"{t.judgement.violations or t.judgement.failure} on {t.case.summary()}"
        for t in tried
        if t.failed
    ]


@pytest.mark.parametrize("prop", PROPERTIES, ids=lambda prop: prop.id)
def test_a_sound_backend_holds_on_whatever_the_shrinker_tries(prop: Property) -> None:
    for name in _ops(prop):
        assert _stray(prop, name) == [], name


def test_the_walk_finds_an_array_that_leaves_its_domain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights without a sum to divide by, as the shrinker once made them."""
    recipe = RECIPES["initial_loss"]
    free = replace(recipe, legal={"weights": lambda case, array: array})
    monkeypatch.setitem(RECIPES, "initial_loss", free)
    assert "nan" in str(_stray(find("model.initial_loss"), "initial_loss", examples=5))


def test_the_walk_finds_a_copy_that_is_simplified_apart_from_its_original() -> None:
    """A poisoned copy of an input, judged by a bound that the input gives."""

    def build(case: Case, ctx: Context, made: Materials) -> Experiment:
        experiment = prop.build(case, ctx, made)
        (call,), (want,) = experiment.calls, experiment.expectations
        assert isinstance(want, Close)
        copy = made.put("copy", partial(np.array, call.inputs["x"]), as_it_is)
        return replace(experiment, calls=(replace(call, inputs={**call.inputs, "x": copy}),))

    prop = find("activation.refines")
    assert _stray(prop, "relu") == []
    assert _stray(replace(prop, build=build), "relu") != []


def test_the_first_loss_of_a_wide_table_is_reported_as_a_number() -> None:
    result = run_backend(
        TRAINING["model.initial_loss"](), claims=("model.initial_loss",), dtypes=("float64",)
    )
    (finding,) = result.findings
    assert "nan" not in finding.message
    weights = Case.from_json(finding.case).arrays["weights"]
    assert weights[-1] == 1.0
    assert np.all(weights >= 0.0)
