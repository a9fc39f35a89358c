"""The adversarial mode: what a backend must not see stays out of its reach, and what it does is
seen from outside.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from assay.impl.adversarial_session import (
    HIDDEN_SIZES,
    SECRETS,
    AdversarialSession,
    Adversary,
    with_secret_sizes,
)
from assay.impl.call import Call, Reply
from assay.impl.contract import Contract
from assay.impl.session import open_session
from assay.properties.adversarial import adversary
from tests.impl.helpers import attention_call, fake

INSIDERS = Path(__file__).with_name("insiders.py")
CALL = attention_call()


@contextmanager
def _guarded(name: str, guard: Adversary | None = None) -> Iterator[AdversarialSession]:
    target = fake(name, INSIDERS)
    with open_session(target, adversary=guard or adversary(0), timeout=60.0) as session:
        assert isinstance(session, AdversarialSession)
        yield session


def _answer(name: str) -> float:
    with _guarded(name) as session:
        (reply,) = session.run([CALL])
    assert reply.failure is None, reply.failure
    return float(reply.outputs["out"].flat[0])


def _open_answer(name: str) -> float:
    with open_session(fake(name, INSIDERS), timeout=60.0) as session:
        (reply,) = session.run([CALL])
    assert reply.failure is None, reply.failure
    return float(reply.outputs["out"].flat[0])


@pytest.mark.parametrize("name", ["ImportsSpec", "ReadsProperties", "ReadsThroughLink"])
def test_the_reference_and_the_judge_are_out_of_reach(name: str) -> None:
    assert _open_answer(name) == 1.0
    assert _answer(name) == 0.0


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="the system has no /proc")
def test_other_processes_are_not_told_of() -> None:
    assert _open_answer("ReadsParent") == 1.0
    assert _answer("ReadsParent") == 0.0


def test_its_own_files_stay_open() -> None:
    assert _answer("ReadsItself") == _open_answer("ReadsItself")


def test_neither_reference_nor_judge_is_in_the_process() -> None:
    assert _answer("HasTheJudge") == 0.0


def test_the_journal_is_out_of_reach(tmp_path: Path) -> None:
    guard = adversary(1, tmp_path / "journal")
    assert str(tmp_path / "journal") in guard.closed


def test_clocks_are_of_no_use() -> None:
    with _guarded("TellsTime") as session:
        days = [session.run([CALL])[0].outputs["out"].flat[0] for _ in range(30)]
    assert np.ptp(days) > 1


def test_each_call_is_made_twice_among_others() -> None:
    with _guarded("Counts") as session:
        first, second = session.rounds([CALL])
        counts = {float(reply.outputs["out"].flat[0]) for (reply,) in (first, second)}
        # Two calls and a sibling of other values.
        assert len(counts) == 2
        assert counts <= {1.0, 2.0, 3.0}
        later = session.rounds([CALL, CALL])
    assert max(reply.outputs["out"].flat[0] for replies in later for reply in replies) <= 3 + 7


def test_alike_rounds_are_judged_once() -> None:
    with open_session(fake("Sound"), adversary=adversary(0)) as session:
        assert isinstance(session, AdversarialSession)
        assert len(session.rounds([CALL, replace(CALL, attributes={})])) == 1


def test_calls_that_measure_are_made_as_they_are() -> None:
    with _guarded("Counts") as session:
        ((reply,),) = session.rounds([replace(CALL, repeat=5)])
    assert reply.outputs["out"].flat[0] == 5.0


@pytest.mark.parametrize(
    ("name", "field"), [("HidesItsWriting", "changed_inputs"), ("HidesItsOverrun", "broken_guards")]
)
def test_what_is_hidden_in_the_worker_is_seen_outside(name: str, field: str) -> None:
    with open_session(fake(name, INSIDERS)) as ordinary:
        assert getattr(ordinary.run([CALL])[0].hygiene, field) == ()
    with _guarded(name) as session:
        hygiene = session.run([CALL])[0].hygiene
    assert getattr(hygiene, field) == ("q",)
    assert "assay.impl.buffers.Block.inspect" in hygiene.global_state


def test_replaced_functions_are_named() -> None:
    with _guarded("PatchesNumpy") as session:
        assert session.run([CALL])[0].hygiene.global_state == ("numpy.allclose",)


def test_a_sound_backend_leaves_nothing_behind() -> None:
    with open_session(fake("Sound"), adversary=adversary(0)) as session:
        (reply,) = session.run([CALL])
    assert reply.memory is None
    assert (reply.hygiene.global_state, reply.hygiene.changed_inputs) == ((), ())


def test_only_data_is_read_from_the_worker(capfd: pytest.CaptureFixture[str]) -> None:
    with _guarded("SendsCode") as session:
        (reply,) = session.run([CALL])
    assert reply.failure is not None
    assert reply.failure.kind == "crashed"
    assert "names builtins.print" in reply.failure.message
    assert "the judge ran this" not in capfd.readouterr().out


def test_secret_sizes_are_added_and_bounds_stay() -> None:
    plain, tiled = Contract("a"), Contract("b", block_sizes=(64, 128))
    for contract in (plain, tiled):
        sizes = {with_secret_sizes(contract, seed).block_sizes for seed in range(20)}
        assert len(sizes) > 10
        for found in sizes:
            assert set(contract.block_sizes) <= set(found)
            assert len(found) <= max(len(contract.block_sizes), 1) + SECRETS
            assert all(n in range(*HIDDEN_SIZES) or n in (16, 64, 128) for n in found)
            changed = replace(contract, block_sizes=found)
            assert changed.arithmetic("float32") == contract.arithmetic("float32")


def test_sixteen_bits_and_gradients_pass_the_line() -> None:
    import ml_dtypes

    cotangent = np.full((1, 1, 3, 2), 4, ml_dtypes.bfloat16)
    call = attention_call(dtype=ml_dtypes.bfloat16, cotangents={"out": cotangent})
    with open_session(fake("Sound"), adversary=adversary(0)) as session:
        replies: list[Reply] = session.run([call])
    assert replies[0].failure is None
    assert (replies[0].gradients["v"] == 2).all()
    assert replies[0].outputs["out"].dtype == ml_dtypes.bfloat16


def test_an_adversary_needs_a_worker() -> None:
    with pytest.raises(ValueError, match="isolate=False leaves an adversary in this process"):
        open_session(fake("Sound"), isolate=False, adversary=adversary(0))


def test_a_crash_ends_the_batch_and_the_next_call_runs() -> None:
    fatal: Call = attention_call(attributes={"scale": 2})
    with open_session(fake("Aborts"), adversary=adversary(0)) as session:
        (reply,) = session.run([fatal])
        assert reply.failure is not None
        assert reply.failure.kind == "crashed"
        assert session.run([CALL])[0].failure is None
