"""Isolation: crashes, hangs and hoards end as failures, the next call runs, and nothing is left
behind.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from assay.impl.call import Call, Reply
from assay.impl.loading import TargetError
from assay.impl.nursery import ensure
from assay.impl.session import open_session
from assay.impl.worker_session import WorkerSession
from tests.impl.fakes import Sound
from tests.impl.helpers import FAKES, attention_call, dirt, fake

FINE = attention_call()
FATAL = attention_call(attributes={"scale": 2})


def _open(name: str, **options: Any) -> WorkerSession:
    session = open_session(fake(name), **options)
    assert isinstance(session, WorkerSession)
    return session


def _works(replies: list[Reply]) -> bool:
    return all(r.failure is None and (r.outputs["out"] == 3).all() for r in replies)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, ml_dtypes.bfloat16])
def test_a_worker_answers_as_this_process_does(dtype: Any) -> None:
    cotangent = np.full((1, 1, 3, 2), 4, dtype)
    call = attention_call(dtype=dtype, cotangents={"out": cotangent})
    with open_session(fake("Sound"), isolate=False) as here, _open("Sound") as there:
        assert here.description == there.description
        (a,), (b,) = here.run([call]), there.run([call])
    assert replace(a.hygiene) == replace(b.hygiene)
    for mine, other in ((a.outputs, b.outputs), (a.gradients, b.gradients)):
        assert {n: (x.dtype, x.tobytes()) for n, x in mine.items()} == {
            n: (x.dtype, x.tobytes()) for n, x in other.items()
        }


def test_replies_do_not_change_when_the_next_call_runs() -> None:
    with _open("Sound") as session:
        (first,) = session.run([FINE])
        session.run([replace(FINE, inputs={**FINE.inputs, "v": FINE.inputs["v"] + 1})])
    assert _works([first])


def test_observations_are_made_in_the_worker() -> None:
    with _open("WritesInput") as session:
        assert dirt(session.run([FINE])[0].hygiene) == {"changed_inputs": ("k",)}


@pytest.mark.parametrize("megabytes", [1, 40])
def test_arrays_larger_than_the_shared_memory_make_it_grow(megabytes: int) -> None:
    x = np.ones((1, 1, megabytes << 16, 4), np.float32)
    with _open("Sound") as session:
        for _ in range(2):
            (reply,) = session.run([Call("attention", {"q": x[:, :, :1], "k": x, "v": x})])
            assert reply.outputs["out"].shape == x.shape


@pytest.mark.parametrize(
    ("name", "timeout", "kind", "words"),
    [
        ("Aborts", 60.0, "crashed", "the process died with SIGABRT"),
        ("ExitsAtOnce", 60.0, "crashed", "the process exited with status 3"),
        ("Hangs", 2.0, "hung", "did not answer within 2 s and was killed"),
    ],
)
def test_a_lost_worker_is_a_failure_and_the_next_call_gets_another(
    name: str, timeout: float, kind: str, words: str
) -> None:
    with _open(name, timeout=timeout) as session:
        for _ in range(2):
            (reply,) = session.run([FATAL])
            assert reply.failure is not None
            assert (reply.failure.kind, reply.failure.message) == (kind, words)
            assert _works(session.run([FINE]))


def test_in_a_batch_the_calls_before_the_crash_keep_their_replies() -> None:
    with _open("Aborts") as session:
        replies = session.run([FINE, FINE, FATAL, FINE])
    assert _works(replies[:2])
    kinds = [r.failure.kind for r in replies[2:] if r.failure is not None]
    assert kinds == ["crashed", "crashed"]
    assert replies[3].failure is not None
    assert replies[3].failure.message.startswith("not run: call 2 of its batch crashed")


def test_the_timeout_is_a_calls_and_not_the_batchs() -> None:
    slow = attention_call(attributes={"scale": 0.75})
    with _open("Sleeps", timeout=2.5) as session:
        assert _works(session.run([slow] * 4))


def test_the_first_use_of_a_profiler_is_outside_the_time_of_a_call() -> None:
    watched = replace(FINE, witness=True)
    with _open("WatchesSlowly", timeout=3.0) as session:
        replies = session.run([FINE, watched])
        assert _works(replies)
        assert [r.hygiene.kernels for r in replies] == [(), ("copy",)]
        assert _works(session.run([watched] * 2))
        (hung,) = session.run([replace(FATAL, witness=True)])
        assert hung.failure is not None
        assert hung.failure.kind == "hung"
        assert _works(session.run([watched]))


def test_a_profiler_that_does_not_start_says_nothing_of_the_backend(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("assay.impl.worker_session.WATCH_TIMEOUT", 0.1)
    with _open("WatchesSlowly", timeout=3.0) as session:
        first, second = session.run([replace(FINE, witness=True), FINE])
        assert first.failure is not None
        assert first.failure.kind == "unsupported"
        assert first.failure.message.startswith("did not make ready to watch kernels within 0.1 s")
        assert second.failure is not None
        assert second.failure.kind == "unsupported"
        assert _works(session.run([FINE]))


def test_what_the_worker_wrote_last_is_in_the_trace() -> None:
    with _open("Aborts") as session:
        (reply,) = session.run([FATAL])
    assert reply.failure is not None
    assert "last words" in reply.failure.trace
    assert "fakes.py" in reply.failure.trace


def test_output_of_a_backend_reaches_nobody(capfd: pytest.CaptureFixture[str]) -> None:
    with _open("Prints") as session:
        for _ in range(3):
            assert _works(session.run([FINE]))
    assert capfd.readouterr() == ("", "")


def test_an_allocation_without_end_is_a_memory_failure() -> None:
    with _open("Hoards", memory=1 << 30, timeout=60) as session:
        (reply,) = session.run([FATAL])
        assert reply.failure is not None
        assert reply.failure.kind == "memory"
        assert _works(session.run([FINE]))


def test_memory_zero_means_no_limit_and_options_are_checked() -> None:
    with _open("Sound", memory=0) as session:
        assert _works(session.run([FINE]))
    with pytest.raises(ValueError, match="timeout=0 must be positive"):
        open_session(fake("Sound"), timeout=0)


def test_unwritten_memory_is_poisoned_in_a_worker_for_all_sizes() -> None:
    with _open("NeverWrites") as session:
        for length in (3, 50, 5000):
            x = np.ones((1, 1, length, 2), np.float32)
            for _ in range(3):
                (reply,) = session.run([Call("attention", {"q": x, "k": x, "v": x})])
                assert np.isnan(reply.outputs["out"]).all()


def test_a_backend_object_is_sent_when_its_class_can_be_imported() -> None:
    with open_session(Sound()) as session:
        assert _works(session.run([FINE]))


def test_a_backend_object_that_cannot_be_sent_says_so() -> None:
    from assay.impl.adapt import adapt

    with pytest.raises(TargetError, match="run it with isolate=False"):
        open_session(adapt(lambda q, k, v: v, "attention"))


def test_what_a_worker_started_ends_with_it() -> None:
    for fatal in (False, True):
        with _open("StartsOther") as session:
            (reply,) = session.run([FINE])
            pid = int(reply.outputs["out"].flat[0])
            assert _state(pid) not in ("", "Z")
            if fatal:
                session.run([FATAL])
        assert _gone(pid)


def test_many_crashes_and_closings_at_once_do_not_disturb_the_nursery() -> None:
    address = ensure("numpy")
    for _ in range(5):
        sessions = [_open("Aborts") for _ in range(6)]
        for session in sessions:
            assert session._worker is not None
            session._worker.channel.send([FATAL])
        for session in sessions:
            session.close()
    assert ensure("numpy") == address
    with _open("Sound") as session:
        assert _works(session.run([FINE]))


def test_closing_ends_the_worker() -> None:
    session = _open("TellsProcess")
    (reply,) = session.run([FINE])
    pid = int(reply.outputs["out"].flat[0])
    assert pid != os.getpid()
    session.close()
    session.close()
    assert _gone(pid)


def test_the_worker_dies_with_a_killed_owner_even_in_an_endless_loop(tmp_path: Path) -> None:
    code = f"""
import numpy as np
from assay.impl.call import Call
from assay.impl.loading import resolve
from assay.impl.session import open_session
x = np.ones((1, 1, 3, 2), np.float32)
call = Call("attention", {{"q": x, "k": x, "v": x}})
pid = open_session(resolve({str(FAKES)!r} + ":TellsProcess")).run([call])[0].outputs["out"].flat[0]
session = open_session(resolve({str(FAKES)!r} + ":Hangs"), timeout=100)
print(int(pid), session._worker._child.pid, flush=True)
session.run([Call("attention", call.inputs, {{"scale": 2}})])
"""
    paths = os.pathsep.join(p for p in sys.path if p)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("ASSAY_NURSERY")}
    environment.update(PYTHONPATH=paths, TMPDIR=str(tmp_path))
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, env=environment
    ) as owner:
        assert owner.stdout is not None
        pids = [int(p) for p in owner.stdout.readline().split()]
        assert len(pids) == 2
        time.sleep(0.2)
        owner.send_signal(signal.SIGKILL)
    assert all(_gone(pid) for pid in pids)
    assert _eventually(lambda: not list(tmp_path.iterdir()))


def _gone(pid: int) -> bool:
    return _eventually(lambda: _state(pid) in ("", "Z"))


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def _eventually(holds: Any) -> bool:
    limit = time.monotonic() + 120
    while not holds() and time.monotonic() < limit:
        time.sleep(0.02)
    return bool(holds())


def _in_pool(_: int) -> tuple[bool, str]:
    with _open("Sound") as session:
        return _works(session.run([FINE])), os.environ.get("ASSAY_NURSERY_NUMPY", "")


def test_processes_of_a_pool_share_one_nursery() -> None:
    address = ensure("numpy")
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, mp_context=context) as pool:
        assert list(pool.map(_in_pool, range(4))) == [(True, address)] * 4


def test_a_nursery_that_died_is_replaced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = ensure("numpy")
    monkeypatch.setenv("ASSAY_NURSERY_NUMPY", str(tmp_path / "gone"))
    with _open("Sound") as session:
        assert _works(session.run([FINE]))
        assert os.environ["ASSAY_NURSERY_NUMPY"] not in (before, str(tmp_path / "gone"))


def test_a_nursery_with_heavy_modules_is_another_one_with_them_loaded() -> None:
    plain, heavy = ensure("numpy"), ensure("numpy", ("sched", "no_such_module"))
    assert heavy not in (plain, "")
    assert ensure("numpy", ("sched", "no_such_module")) == heavy
