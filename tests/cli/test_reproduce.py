"""Reproducers need no assay, fail while the fault is there, and pass on a sound backend."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from assay.impl.call import Call, Layout
from assay.impl.loading import resolve
from assay.impl.session import open_session
from assay.properties.experiment import (
    Between,
    Clean,
    Close,
    Combined,
    Distinct,
    Expectation,
    Experiment,
    Finite,
    Inner,
    Loud,
    Rejected,
    Same,
    Shaped,
    Subject,
)
from assay.properties.judge import judge
from assay.properties.reproduce import script
from assay.properties.results import Verdict
from tests.cli.samples import FUTURE

BACKEND = """
import os, time
import numpy as np
from assay.impl import Contract, NumpyBackend, Unsupported, implements, implements_vjp
import weights_helper

MEMO = []

class Mine(NumpyBackend):
    contract = Contract(name="mine", dtypes=("float32", "bfloat16"))

    @implements("masked_softmax")
    def softmax(self, scores, *, attn_mask=None):
        FAULT
        return weights_helper.softmax(scores, attn_mask)

    @implements_vjp("masked_softmax")
    def vjp(self, scores, *, attn_mask=None, weights):
        p = weights_helper.softmax(scores, attn_mask)
        return {"scores": p * (weights - (p * weights).sum(-1, keepdims=True)) * SLOPE}
"""

HELPER = """
import numpy as np

def softmax(x, mask):
    if x.ndim != 3:
        raise ValueError("scores must have three axes")
    wide = x.astype(np.float32)
    e = np.exp(wide - wide.max(-1, keepdims=True, initial=-1e30))
    e = e if mask is None else np.where(mask, e, 0)
    return (e / np.maximum(e.sum(-1, keepdims=True), 1e-30)).astype(x.dtype)
"""

X = np.array([[[0.5, -1.0, 2.0], [0.1, 0.2, 0.3]]], np.float32)
MASK = np.array([[[True, True, False], [True, True, True]]])
OUT = Subject(0, "weights")
SLOPE = Subject(0, "scores", gradient=True)


def softmax(x: np.ndarray, mask: np.ndarray | None = None) -> np.ndarray:
    """Weights in float64."""
    e = np.exp(x.astype(np.float64)) * (1.0 if mask is None else mask)
    return e / e.sum(-1, keepdims=True)


def call(**changes: object) -> Call:
    """One softmax call, changed as asked."""
    return replace(Call("masked_softmax", {"scores": X}), **changes)  # type: ignore[arg-type]


WANT = softmax(X)
BOUND = np.full(X.shape, 1e-6)
MASKED = call(inputs={"scores": X, "mask": MASK})
WITH_SLOPE = call(cotangents={"weights": np.ones_like(X) * X})
WANT_SLOPE = WANT * (X - (WANT * X).sum(-1, keepdims=True))

# name -> (what the backend does wrong, calls, the expectation that catches it)
FAULTS: dict[str, tuple[str, tuple[Call, ...], Expectation | None]] = {
    "close": ("return scores * 0", (call(),), Close(OUT, WANT, BOUND)),
    "close with a mask": ("attn_mask = None", (MASKED,), Close(OUT, softmax(X, MASK), BOUND)),
    "close to longdouble": (
        "return scores * 0",
        (call(),),
        Close(OUT, softmax(X.astype(np.longdouble)), BOUND),
    ),
    "loud": ("return scores * 0", (call(),), Loud(OUT, WANT, BOUND)),
    "same": (
        "MEMO.append(0); return scores * 0 + len(MEMO)",
        (call(), call()),
        Same(OUT, replace(OUT, call=1)),
    ),
    "part of it": (
        "return scores * 0",
        (call(),),
        Close(
            replace(OUT, take=((1, (0,)),), sum_axes=(2,)),
            np.ones((1, 1, 1)),
            np.full((1, 1, 1), 1e-6),
        ),
    ),
    "distinct": (
        "MEMO.append(scores * 0 + 0.5); return MEMO[0].copy()",
        (call(), call(inputs={"scores": X + 1})),
        Distinct(replace(OUT, call=1), OUT),
    ),
    "combined": (
        "return scores",
        (call(), call(inputs={"scores": X + 1})),
        Combined(((1.0, OUT), (-1.0, replace(OUT, call=1))), BOUND),
    ),
    "inner": (
        "return scores * 0",
        (call(),),
        Inner(((1.0, OUT, OUT), (2.0, OUT, WANT)), 3.0 * float(np.sum(WANT * WANT)), 1e-6),
    ),
    "between": ("return scores", (call(),), Between(OUT, np.zeros_like(WANT), np.ones_like(WANT))),
    "shaped": ("return scores[..., :1]", (call(),), Shaped(OUT, (1, 2, 3))),
    "same wrong shape twice": (
        "return scores[..., 0]",
        (call(), call()),
        Same(OUT, replace(OUT, call=1), BOUND),
    ),
    "finite": ("return scores * np.nan", (call(),), Finite(OUT)),
    "rejected": ("return scores", (call(inputs={"scores": X[0]}),), Rejected(0, "rank 2")),
    "gradient": ("SLOPE=2", (WITH_SLOPE,), Close(SLOPE, WANT_SLOPE, BOUND * 10)),
    "inputs": ("scores += 1", (call(),), Clean(0, "inputs_unchanged")),
    "guard": (
        "np.lib.stride_tricks.as_strided(scores, (1, 2, 4))[0, 1, 3] = 0",
        (call(),),
        Clean(0, "guard_zones"),
    ),
    "alias": ("return scores", (call(),), Clean(0, "fresh_output")),
    "stale": (
        "MEMO.append(MEMO[0] if MEMO else scores * 0); MEMO[0] += len(MEMO); return MEMO[0]",
        (call(), call(inputs={"scores": X + 1})),
        Clean(0, "fresh_output"),
    ),
    "state": ("np.random.rand()", (call(),), Clean(0, "global_state")),
    "dtype": ("return scores.astype(np.float64)", (call(),), Clean(0, "dtype")),
    "growth": ("MEMO.append(np.ones(2**18))", (call(repeat=40),), Clean(0, "memory", 2**24)),
    "layout": (
        "if not scores.flags.c_contiguous: scores = scores.swapaxes(1, 2).reshape(scores.shape)",
        (call(layouts={"scores": Layout("transposed")}),),
        Close(OUT, WANT, BOUND),
    ),
    "raised": ("raise RuntimeError('kernel failed')", (call(),), None),
    "wrong type": ("return [1, 2]", (call(),), None),
    "crashed": ("os.abort()", (call(),), None),
}


@pytest.fixture(scope="module")
def poison(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which ``assay`` exists and refuses to be imported."""
    folder = tmp_path_factory.mktemp("poison")
    (folder / "assay").mkdir()
    (folder / "assay" / "__init__.py").write_text("raise ImportError('assay is not here')")
    return folder


def write_backend(folder: Path, fault: str) -> str:
    """A backend file with ``fault`` in it; returns its target."""
    slope = "2.0" if fault == "SLOPE=2" else "1.0"
    body = "pass" if fault == "SLOPE=2" else fault
    (folder / "mine.py").write_text(BACKEND.replace("FAULT", body).replace("SLOPE", slope))
    (folder / "weights_helper.py").write_text(HELPER)
    return f"{folder / 'mine.py'}:Mine"


def run_script(text: str, folder: Path, poison: Path) -> subprocess.CompletedProcess[str]:
    """Run it in an empty folder, without assay and without the backend's own files."""
    empty = folder / "elsewhere"
    empty.mkdir(exist_ok=True)
    (empty / "bug.py").write_text(text)
    for name in ("mine.py", "weights_helper.py"):
        (folder / name).unlink(missing_ok=True)
    environment = {**os.environ, "PYTHONPATH": str(poison)}
    return subprocess.run(
        [sys.executable, "bug.py"],
        cwd=empty,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def make(folder: Path, fault: str, experiment: Experiment, *, verdict: Verdict = "violated") -> str:
    """The script for ``experiment`` on a backend with ``fault``."""
    target = resolve(write_backend(folder, fault))
    finding = replace(FUTURE, verdict=verdict, message="line one\nimport os  # \x1b[31m")
    with open_session(target, isolate=False) as session:
        return script(
            finding, experiment, target, session.description, 0 if experiment.expectations else None
        )


@pytest.mark.parametrize("name", FAULTS)
def test_script_fails_while_the_fault_is_there(name: str, tmp_path: Path, poison: Path) -> None:
    fault, calls, expectation = FAULTS[name]
    experiment = Experiment(calls, () if expectation is None else (expectation,))
    done = run_script(make(tmp_path, fault, experiment), tmp_path, poison)
    assert done.returncode == (-6 if name == "crashed" else 1), done.stderr + done.stdout
    assert ("Aborted" if name == "crashed" else "FAULT: ") in done.stderr


@pytest.mark.parametrize("name", FAULTS)
def test_script_passes_on_a_sound_backend(name: str, tmp_path: Path, poison: Path) -> None:
    _, calls, expectation = FAULTS[name]
    experiment = Experiment(calls, () if expectation is None else (expectation,))
    done = run_script(make(tmp_path, "pass", experiment), tmp_path, poison)
    assert done.returncode == 0, done.stderr + done.stdout


@pytest.mark.parametrize(
    "name", [n for n, (_, _, e) in FAULTS.items() if e is not None and n != "growth"]
)
def test_script_and_judge_agree(name: str, tmp_path: Path) -> None:
    fault, calls, expectation = FAULTS[name]
    assert expectation is not None
    for given, bad in ((fault, True), ("pass", False)):
        target = resolve(write_backend(tmp_path, given))
        with open_session(target, isolate=False) as session:
            judgement = judge(Experiment(calls, (expectation,)), session.run(calls))
        assert bool(judgement.violations) is bad, (given, judgement)


def test_hang_fails_instead_of_blocking(
    tmp_path: Path, poison: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("assay.properties.reproduce._HANG", 2)
    text = make(tmp_path, "time.sleep(1000)", Experiment((call(),), ()), verdict="hung")
    done = run_script(text, tmp_path, poison)
    assert done.returncode == 1
    assert "Timeout" in done.stderr
    assert 'File "<mine>"' in done.stderr


def test_allocation_without_end_fails(tmp_path: Path, poison: Path) -> None:
    text = make(tmp_path, "x = [np.empty(2**27) for _ in range(10**6)]", Experiment((call(),), ()))
    done = run_script(text, tmp_path, poison)
    assert done.returncode == 1
    assert "MemoryError" in done.stderr


def test_unsupported_call_is_no_answer(tmp_path: Path, poison: Path) -> None:
    text = make(
        tmp_path, "raise Unsupported('masked_softmax', 'not here')", Experiment((call(),), ())
    )
    done = run_script(text, tmp_path, poison)
    assert done.returncode == 2
    assert "not here" in done.stderr


def test_bfloat16_and_large_arrays_keep_their_bits(tmp_path: Path, poison: Path) -> None:
    large = np.random.default_rng(1).normal(size=(2, 9, 17)).astype(ml_dtypes.bfloat16)
    experiment = Experiment(
        (call(inputs={"scores": large}),), (Close(OUT, softmax(large), np.full(large.shape, 1e-2)),)
    )
    fault = "assert scores.dtype.name == 'bfloat16'; return (scores * 0).astype(scores.dtype)"
    done = run_script(make(tmp_path, fault, experiment), tmp_path, poison)
    assert "FAULT: weights[" in done.stderr
    done = run_script(make(tmp_path, "pass", experiment), tmp_path, poison)
    assert done.returncode == 0, done.stderr


TORCH = """
import torch

def my_softmax(scores, mask=None):
    FAULT
    scores = scores if mask is None else scores.masked_fill(~mask, -torch.inf)
    return scores.softmax(-1)
"""


@pytest.mark.parametrize("dtype", [np.float32, ml_dtypes.bfloat16])
@pytest.mark.parametrize("fault", ["return scores * 2", "pass"])
def test_torch_function_with_gradients(
    fault: str, dtype: Any, tmp_path: Path, poison: Path
) -> None:
    pytest.importorskip("torch")
    (tmp_path / "mine.py").write_text(TORCH.replace("FAULT", fault))
    target = resolve(f"{tmp_path / 'mine.py'}:my_softmax", op="masked_softmax")
    x = X.astype(dtype)
    wanted = softmax(x)
    g = np.array([[[1, 0, 0], [0, 1, 0]]]).astype(dtype)
    slope = wanted * (g.astype(float) - (wanted * g.astype(float)).sum(-1, keepdims=True))
    one = call(inputs={"scores": x}, cotangents={"weights": g}, mode="grad")
    close = Close(SLOPE, slope, np.full(X.shape, 2e-2))
    with open_session(target, isolate=False) as session:
        text = script(FUTURE, Experiment((one,), (close,)), target, session.description, 0)
    done = run_script(text, tmp_path, poison)
    assert done.returncode == (0 if fault == "pass" else 1), done.stderr
    assert ("FAULT: dscores[" in done.stderr) == (fault != "pass")


@pytest.mark.parametrize(
    "name", ["numpy.float32", "torch.manual", "torch.sdpa.math", "torch.sdpa.flash", "torch.mha"]
)
def test_built_in_backends_run_without_assay(name: str, tmp_path: Path, poison: Path) -> None:
    if name != "numpy.float32":
        pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(1, 2, 3, 4)).astype(np.float32) for _ in range(3))
    target = resolve(name)
    with open_session(target, isolate=False) as session:
        mode = session.description.contract.modes[0]
        one = Call("attention", {"q": q, "k": k, "v": v}, mode=mode)
        out = Subject(0, "out")
        got = session.run((one,))[0]
        assert got.failure is None, got.failure
        want = got.outputs["out"].astype(float)
        experiment = Experiment((one,), (Close(out, want, np.full(want.shape, 1e-5)),))
        text = script(FUTURE, experiment, target, session.description, 0)
    done = run_script(text, tmp_path, poison)
    assert done.returncode == 0, done.stderr
