"""``pytest --assay``: cells as tests, in a real pytest of its own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from tests.cli.samples import PLUGIN

pytest_plugins = ["pytester"]

SRC = str(Path(__file__).resolve().parents[2] / "src")
CLAIMS = ["--assay-claims", "softmax.refines,softmax.shift_invariant,hygiene.shape"]

KERNELS = """
import numpy as np
from assay.impl import Contract, NumpyBackend, Unavailable, implements

class Sound(NumpyBackend):
    contract = Contract(name="my-sound", dtypes=("float32", "float64"), gradients=False)

    @implements("masked_softmax")
    def softmax(self, scores):
        e = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
        return e / e.sum(-1, keepdims=True)

class Wrong(Sound):
    contract = Contract(name="my-wrong", gradients=False)

    @implements("masked_softmax")
    def softmax(self, scores):
        return Sound.softmax(self, scores) * np.float32(1.01)

class NoDevice(Sound):
    def __init__(self):
        raise Unavailable("there is no such chip", "buy one")
"""

KNOWN = """
[[known]]
backend = "my-wrong"
claim = "softmax.refines"
reason = "a hundredth too much"
"""


@pytest.fixture
def run(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs pytest with the plugin, in a folder with kernels and a test of another kind."""
    monkeypatch.setenv("PYTHONPATH", SRC)
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)
    pytester.makepyfile(kernels=KERNELS, test_other="def test_other(): pass")
    pytester.makefile(".toml", known=KNOWN)
    return Run(pytester)


class Run:
    """One call is one pytest."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester

    def __call__(self, target: str, *more: str) -> pytest.RunResult:
        """``pytest --assay kernels.py:target`` of a few claims."""
        line = [*PLUGIN.split(), "--assay", f"kernels.py:{target}", *CLAIMS, *more]
        return self.pytester.runpytest_subprocess(*line)


def test_each_cell_is_a_test_and_a_fault_is_a_failure_that_says_all(run: Run) -> None:
    result = run("Wrong", "--junit-xml", "out.xml")
    result.assert_outcomes(failed=1, passed=2)
    result.stdout.fnmatch_lines(
        [
            "my-wrong softmax.refines of masked_softmax float32: weights* (error * x bound)",
            "smallest case: B=1 N=1 S=1*",
            "looks like: scaled by 1.01",
            "again: assay run kernels.py:Wrong --claims softmax.refines --ops masked_softmax *",
            "FAILED assay/my-wrong::softmax.refines[[]masked_softmax-float32[]]*",
        ]
    )
    suite = ET.parse(run.pytester.path / "out.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("3", "1")
    names = {(case.get("classname"), case.get("name")) for case in suite}
    assert ("assay.my-wrong", "softmax.refines[masked_softmax-float32]") in names
    properties = {p.get("name"): p.get("value") for p in suite[0].iter("property")}
    assert properties["verdict"] == "violated"


def test_sound_cells_pass_in_workers_of_xdist(run: Run) -> None:
    pytest.importorskip("xdist")
    result = run("Sound", "-n", "2")
    assert result.ret == 0
    assert result.parseoutcomes()["passed"] >= 4


def test_cells_are_chosen_by_name_marker_and_id(run: Run) -> None:
    listing = ("--collect-only", "-q")
    chosen = run("Sound", *listing, "-k", "shape").stdout
    chosen.fnmatch_lines(["assay/my-sound::hygiene.shape*", "*3 deselected*"])
    chosen.no_fnmatch_line("*softmax.refines*")
    chosen = run("Sound", *listing, "-m", "float64 and softmax", "--strict-markers").stdout
    chosen.fnmatch_lines(["assay/my-sound::softmax.refines[[]masked_softmax-float64[]]"])
    chosen.no_fnmatch_line("*float32*")
    one = "assay/my-sound::softmax.refines[masked_softmax-float64]"
    assert run("Sound", *listing, one).stdout.lines[0] == one
    both = run("Sound", *listing, "test_other.py").stdout
    both.fnmatch_lines(["test_other.py::test_other", "assay/my-sound::*"])


@pytest.mark.parametrize("workers", [(), ("-n", "2")])
def test_an_expected_finding_is_xfail_and_a_stale_entry_fails(
    run: Run, workers: tuple[str, ...]
) -> None:
    if workers:
        pytest.importorskip("xdist")
    result = run("Wrong", "--assay-known", "known.toml", *workers)
    result.assert_outcomes(xfailed=1, passed=2)
    assert result.ret == 0
    Path(run.pytester.path / "known.toml").write_text(KNOWN.replace("my-wrong", "my-sound"))
    result = run("Sound", "--assay-known", "known.toml", *workers)
    assert result.ret == 1
    result.stdout.fnmatch_lines(["take it out of known.toml: my-sound softmax.refines*"])
    result = run("Sound", "--assay-known", "known.toml", "-k", "float64", *workers)
    assert result.ret == 0


def test_a_backend_that_cannot_run_is_skipped_and_a_broken_one_fails(run: Run) -> None:
    result = run("NoDevice", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*absent: there is no such chip; buy one"])
    result = run("Missing")
    result.assert_outcomes(errors=1)
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines(["*has no attribute 'Missing'; valid: NoDevice, Sound, Wrong"])


@pytest.mark.parametrize(
    ("option", "said"),
    [
        (("--assay-profile", "fast"), "profile='fast' matches nothing; valid: ci, nightly"),
        (("--assay-known", "no.toml"), "no.toml: No such file"),
        (("--assay", "torch.sdpa.mth"), "did you mean 'torch.sdpa.math'"),
    ],
)
def test_a_wrong_option_is_said_before_anything_runs(
    run: Run, option: tuple[str, str], said: str
) -> None:
    result = run("Sound", *option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert said in result.stderr.str()


def test_without_the_option_pytest_starts_as_fast_as_ever() -> None:
    code = (
        "import sys, pytest; before = set(sys.modules); import assay.cli.pytest_plugin; "
        "print(*sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONPATH": SRC},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["assay", "assay.cli", "assay.cli.pytest_plugin"]
