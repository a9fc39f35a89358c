"""``assay run --adversarial``: a kernel that looks right elsewhere is found, its notes are shown,
and it is found again in the same mode.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import assay
from assay.cli.command import Status
from assay.cli.main import main
from assay.properties.campaign import OptionError, Options

KERNEL = """
import time

import numpy as np

from assay.impl import Contract, NumpyBackend, implements


class Kernel(NumpyBackend):
    contract = Contract("bomb", gradients=False)

    def __init__(self):
        self.loaded = time.time()

    @implements("relu")
    def relu(self, x):
        late = time.time() > self.loaded + 3600
        return np.maximum(x, 0) + np.float32(late)
"""


@pytest.fixture
def target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernel.py").write_text(KERNEL)
    return "kernel.py:Kernel"


def _run(target: str, *options: str) -> int:
    return main(["run", target, "--claims", "activation.refines", "--jobs", "1", *options])


def test_a_kernel_that_waits_for_its_day_is_found(
    target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(target) == Status.HELD
    capsys.readouterr()
    files = ["--json", "a.json", "--html", "a.html", "--markdown", "a.md"]
    assert _run(target, "--adversarial", *files) == Status.FINDINGS
    printed = capsys.readouterr().out
    note = "kernel.py:2: imports time: asks for the time"
    assert note in printed
    result = json.loads(Path("a.json").read_text())["result"]
    assert result["adversarial"] is True
    assert result["static_notes"] == [note]
    (finding,) = [c["finding"] for c in result["cells"] if c["finding"]]
    assert finding["adversarial"] is True
    assert note in Path("a.html").read_text()
    assert f"replay: assay replay {finding['id']}" in printed
    assert main(["replay", finding["id"]]) == Status.FINDINGS
    assert "asks for the time" in Path("a.md").read_text()


def test_the_seed_is_the_systems_unless_it_is_given(target: str) -> None:
    seeds = set()
    for number in range(2):
        _run(target, "--adversarial", "--json", f"{number}.json")
        seeds.add(json.loads(Path(f"{number}.json").read_text())["result"]["seed"])
    assert len(seeds) == 2
    _run(target, "--adversarial", "--seed", "7", "--json", "7.json")
    assert json.loads(Path("7.json").read_text())["result"]["seed"] == 7


def test_a_kernel_in_this_process_cannot_be_kept_in_the_dark() -> None:
    with pytest.raises(OptionError, match="adversarial=True and isolate=False exclude each other"):
        Options(("numpy.float32",), adversarial=True, isolate=False)
    with pytest.raises(OptionError, match="is in this process already; name it by text"):
        assay.run(lambda x: x, op="relu", adversarial=True)


def test_a_sound_kernel_holds(target: str) -> None:
    assert (
        main(
            [
                "run",
                "numpy.float32",
                "--ops",
                "attention",
                "--claims",
                "attention.refines",
                "--dtypes",
                "float32",
                "--adversarial",
                "--jobs",
                "1",
            ]
        )
        == Status.HELD
    )
