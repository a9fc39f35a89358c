"""The catalogue: every obligation earns its class, every twin is refuted, every proof claim is
covered.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from pathlib import Path

import pytest

from assay.cli.store import kept_proofs
from assay.proofs.discharge import discharge
from assay.proofs.obligation import STATUSES, Outcome
from assay.proofs.obligations import OBLIGATIONS, select
from assay.spec.claims import CLAIMS

IDS = [o.id for o in OBLIGATIONS]
KEPT = Path(__file__).parents[2] / ".assay"


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """Settled once, on both cores, by the first of the processes that run tests; what `assay prove`
    has settled from the same sources and with the same versions is not settled again.
    """
    place = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        # What all have in common. Without them it outlives the run, and so would the outcomes.
        place = place.parent
    kept = place / "outcomes.json"
    with (place / "outcomes.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            found = discharge(jobs=2, timeout=120.0, known=kept_proofs(KEPT))
            kept.write_text(json.dumps([o.as_json() for o in found]))
    return {o.id: o for o in map(Outcome.from_json, json.loads(kept.read_text()))}


def ran(outcome: Outcome) -> Outcome:
    """Skips where what would decide it is not installed."""
    if outcome.status == "unavailable":
        pytest.skip(outcome.detail)
    return outcome


@pytest.mark.parametrize("name", IDS)
def test_it_earns_its_class(name: str, outcomes: dict[str, Outcome]) -> None:
    (obligation,) = select((name,))
    outcome = ran(outcomes[name])
    assert outcome.status == obligation.strength, outcome.detail


@pytest.mark.parametrize("name", IDS)
def test_its_twin_is_refuted(name: str, outcomes: dict[str, Outcome]) -> None:
    twin = ran(outcomes[name]).twin
    assert twin.refuted
    assert twin.counterexample


@pytest.mark.parametrize("name", IDS)
def test_it_ran_the_spec(name: str, outcomes: dict[str, Outcome]) -> None:
    assert ran(outcomes[name]).spec
    assert all(re.fullmatch(r"[0-9a-f]{16}", f.hash) for f in outcomes[name].spec)


OWED: frozenset[str] = frozenset()
"""Families whose obligations are still to be written: the report shows their claims as open."""


def test_every_proof_claim_has_an_obligation() -> None:
    # The kernel's do not count: where coqc is missing, a claim must have another one.
    owed = {c.id for c in CLAIMS if c.proof} - {o.claim for o in OBLIGATIONS if o.method != "coq"}
    assert {claim.partition(".")[0] for claim in owed} == OWED


def test_every_obligation_belongs_to_a_claim_and_names_it() -> None:
    claims = {c.id for c in CLAIMS}
    assert len(set(IDS)) == len(IDS)
    assert all(o.claim in claims and o.id.startswith(f"{o.claim}/") for o in OBLIGATIONS)


def test_only_statements_about_all_sizes_are_called_proved() -> None:
    for o in OBLIGATIONS:
        if o.strength == "proved":
            assert re.search(r"\bany\b|\bevery\b", o.generality), o.id
        assert o.strength in STATUSES
        assert o.strength not in ("refuted", "open", "unavailable")


def test_outcomes_survive_json(outcomes: dict[str, Outcome]) -> None:
    for outcome in outcomes.values():
        assert Outcome.from_json(json.loads(json.dumps(outcome.as_json()))) == outcome


def test_every_assumption_has_a_witness(outcomes: dict[str, Outcome]) -> None:
    assumptions = [a for o in outcomes.values() for a in o.assumptions]
    assert assumptions
    assert all(a.text for a in assumptions)
