"""The command line as a user meets it: help, errors with what is valid, what is kept."""

from __future__ import annotations

import errno
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from assay.cli import main as front
from assay.cli.command import Command, Status
from assay.cli.main import COMMANDS, main
from assay.impl.registry import Builtin

HEAVY = ("numpy", "torch", "hypothesis", "rich", "jinja2", "matplotlib", "z3", "sympy", "flint")
SRC = str(Path(__file__).resolve().parents[2] / "src")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def python(code: str) -> str:
    """Run ``code`` in a new interpreter; its output."""
    environment = {**os.environ, "PYTHONPATH": SRC}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
    )
    return done.stdout


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys, contextlib, io\n"
        "from assay.cli.main import main\n"
        "with contextlib.redirect_stdout(io.StringIO()): main(['--help'])\n"
        f"print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    )
    assert python(code).strip() == "[]"


def test_importing_the_package_imports_nothing_heavy() -> None:
    assert (
        python(f"import assay, sys; print(sorted(set({HEAVY!r}) & set(sys.modules)))").strip()
        == "[]"
    )


def test_the_check_for_heavy_imports_can_fail() -> None:
    code = f"import assay.spec.softmax, sys; print(sorted(set({HEAVY!r}) & set(sys.modules)))"
    assert "numpy" in python(code)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c.name)
def test_every_command_has_help_with_examples(
    command: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command.name, "--help"]) == 0
    printed = capsys.readouterr().out
    assert "examples:" in printed
    assert all(line in printed for line, _ in command.examples)


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("assay ")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ([], "required: COMMAND"),
        (["dance"], "invalid choice: 'dance'"),
        (["run"], "assay list backends"),
        (["run", "--all", "numpy.float32"], "exclude each other"),
        (["run", "numpy.float23"], "numpy.float32"),
        (["run", "nowhere.py:Backend"], "does not exist"),
        (["run", "no_such_module:Backend"], "not installed"),
        (["run", "numpy.float32", "--profile", "fast"], "valid: ci, nightly, quick, soak"),
        (["run", "numpy.float32", "--claims", "attention.colour"], "attention.refines"),
        (["run", "numpy.float32", "--ops", "convolve"], "attention, batch_norm"),
        (["run", "numpy.float32", "--dtypes", "float8"], "bfloat16, float16, float32, float64"),
        (["run", "numpy.float32", "--op", "convolve"], "attention, batch_norm"),
        (["run", "numpy.float32", "--time", "0"], "must be a positive time"),
        (["run", "numpy.float32", "--time", "soon"], "must be a positive time"),
        (["run", "numpy.float32", "--seed", "-1"], "whole number"),
        (["run", "numpy.float32", "--seed", "x"], "whole number"),
        (["run", "numpy.float32", "--jobs", "0"], "jobs=0"),
        (
            ["run", "numpy.float32", "--html", "no/where/r.html"],
            "--html='no/where/r.html' must be a file",
        ),
        (["run", "numpy.float32", "--known", "no.toml"], "no.toml: No such file"),
        (["run", "numpy.float32", "--resume"], "no unfinished campaign"),
        (["list", "colours"], "invalid choice: 'colours'"),
        (["report"], "assay run TARGET"),
        (["replay", "abc"], "assay run TARGET"),
        (["repro", "abc"], "assay run TARGET"),
        (["prove", "softmax.colour"], "softmax.colour"),
        (["new-backend", "kernel.txt"], "must be a Python module's name"),
        (["new-backend", "no/where/kernel.py"], "directory that exists"),
    ],
)
def test_bad_input_is_2_with_one_message_that_says_what_is_valid(
    line: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line) == Status.USAGE
    printed = capsys.readouterr().err
    assert said in printed
    assert "Traceback" not in printed


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("raise ImportError('no kernel library')", "no kernel library"),
        ("B = 3", "is a int"),
        ("def other(): pass", "has no attribute 'B'; valid: other"),
        ("def B(q, k, v): return q", "say which op it computes (--op)"),
        (
            "from assay.impl import NumpyBackend\nclass B(NumpyBackend): pass",
            "set contract = Contract(name=...)",
        ),
        (
            "from assay.impl import NumpyBackend, Contract\n"
            "class B(NumpyBackend): contract = Contract(name='b')",
            "implements no op",
        ),
        ("from assay.impl import Contract\nContract(name='b', dtypes=('f32',))", "'f32'"),
        ("x = (", "SyntaxError"),
    ],
)
def test_bad_adapter_is_2_with_one_message(
    source: str, said: str, elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (elsewhere / "bad.py").write_text(source)
    assert main(["run", "bad.py:B", "--no-isolate"]) == Status.USAGE
    printed = capsys.readouterr().err
    assert said in printed
    assert "bad.py" in printed


def test_damaged_journal_is_2_and_left_as_it_is(
    elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    journal = elsewhere / ".assay" / "journal.sqlite"
    journal.parent.mkdir()
    journal.write_bytes(b"this is no database " * 100)
    for line in (["report"], ["replay", "a"], ["run", "numpy.float32"]):
        assert main(line) == Status.USAGE
        assert "journal.sqlite is damaged" in capsys.readouterr().err
    assert journal.read_bytes() == b"this is no database " * 100


def fail_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Let ``assay list`` raise ``error``."""

    def execute(args: object) -> Status:
        raise error

    broken = Command("list", "", (("assay list", ""),), lambda parser: None, execute)
    monkeypatch.setattr(front, "COMMANDS", (broken,))


def test_full_disk_is_3_and_says_what_is_kept(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fail_with(monkeypatch, OSError(errno.ENOSPC, "No space left on device", "report.html"))
    assert main(["list"]) == Status.UNANSWERED
    printed = capsys.readouterr().err
    assert "disk is full (report.html)" in printed
    assert "kept" in printed


def test_report_to_a_full_disk_is_3(
    sound_journal: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["report", "--json", "/dev/full", "--directory", str(sound_journal)])
        == Status.UNANSWERED
    )
    assert "disk is full" in capsys.readouterr().err


def test_ctrl_c_is_3(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    fail_with(monkeypatch, KeyboardInterrupt())
    assert main(["list"]) == Status.UNANSWERED
    assert "stopped; what was finished is kept" in capsys.readouterr().err


def test_missing_file_is_2(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fail_with(monkeypatch, FileNotFoundError(errno.ENOENT, "No such file or directory", "x.json"))
    assert main(["list"]) == Status.USAGE
    assert capsys.readouterr().err == "assay: x.json: No such file or directory\n"


def test_fault_of_our_own_is_3_and_its_traceback_is_kept_in_a_file(
    monkeypatch: pytest.MonkeyPatch, elsewhere: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fail_with(monkeypatch, RuntimeError("lost the plot"))
    assert main(["list"]) == Status.UNANSWERED
    printed = capsys.readouterr().err
    assert "internal error: RuntimeError: lost the plot" in printed
    (file,) = (elsewhere / ".assay").glob("error-*.txt")
    assert str(file.relative_to(elsewhere)) in printed
    assert "Traceback" in file.read_text()


def test_reader_that_goes_away_is_no_traceback() -> None:
    environment = {**os.environ, "PYTHONPATH": SRC}
    line = f"{sys.executable} -m assay list claims --json | head -c 1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", line], capture_output=True, text=True, env=environment, check=False
    )
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "what",
    ["ops", "claims", "backends", "properties", "obligations", "profiles", "faults", "controls"],
)
def test_lists_are_not_empty_and_the_same_as_json(
    what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["list", what, "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert len(rows) > 1
    assert main(["list", what]) == 0
    assert str(next(iter(rows[0].values()))) in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("1.5s", 1.5), ("5m", 300), ("2h", 7200)]
)
def test_time_has_units(text: str, seconds: float) -> None:
    from assay.cli.run import duration

    assert duration(text) == seconds


def test_help_takes_less_processor_time_than_the_limit() -> None:
    environment = {**os.environ, "PYTHONPATH": SRC}
    line = [sys.executable, "-m", "assay", "--help"]
    times = []
    for _ in range(5):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(line, capture_output=True, env=environment, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(times) < 0.3


def test_a_backend_that_cannot_run_here_is_3_and_is_listed_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    absent = Builtin("chip.fast", "nowhere:X", "a chip", ("no_such_chip",), "chip")
    monkeypatch.setattr("assay.impl.loading.BACKENDS", (absent,))
    monkeypatch.setattr("assay.impl.registry.BACKENDS", (absent,))
    remedy = "pip install 'assay[chip]'"
    assert main(["run", "chip.fast"]) == Status.UNANSWERED
    said = f"assay: cannot run here: chip.fast: module no_such_chip is not installed ({remedy})\n"
    assert capsys.readouterr().err == said
    assert main(["list", "backends"]) == 0
    assert f"absent: no_such_chip ({remedy})" in capsys.readouterr().out
