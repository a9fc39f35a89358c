"""layout: what it prints, by what factor, what is refused and why; nothing is allocated."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from assay.cli.command import Status
from assay.cli.main import main
from assay.spec.models.catalogue import MODELS

SRC = str(Path(__file__).resolve().parents[2] / "src")
ENVIRONMENT = {**os.environ, "PYTHONPATH": SRC}


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["layout", *words]) == Status.HELD
    printed = capsys.readouterr()
    assert not printed.err
    return printed.out


def cells(text: str, first: str) -> list[str]:
    """The entries of the table row that begins with ``first``, blanks between them removed."""
    (row,) = [line for line in text.splitlines() if line.strip().startswith(f"{first} ")]
    return [part.strip() for part in row.strip().split("  ") if part.strip()]


def test_karpathy_is_359_times_smoke_and_each_score_matrix_256(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = shown(capsys, "char_gpt", "--preset", "karpathy", "--against", "smoke")
    assert cells(out, "trainable parameters") == [
        "trainable parameters",
        "30,017",
        "10,788,929",
        "359x",
    ]
    assert cells(out, "score matrix of one head")[1:] == ["256", "65,536", "256x"]
    assert "stored: 10,788,941 scalars in 96 tensors; trainable: 10,788,929" in out
    assert "L (4 D² + 2 D F + 6 D + F) + 2 D + V D + V = 10,788,929" in out
    assert "stored besides: 2 L (residual dropout rates) = 12" in out


def test_the_course_gpt_shows_its_counts_and_costs(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, "gpt", "--batch", "4", "--set", "context=64")
    assert "forward and backward: 1,409,286,144 FLOPs" in out
    assert cells(out, "block.attention.scores")[-1] == "50,331,648"
    out = shown(capsys, "gpt")
    assert "stored: 875,264 scalars in 52 tensors" in out
    assert "key and value cache: 524,288 bytes (512 KiB)" in out
    assert cells(out, "block.*.attention.qkv.weight")[1:] == [
        "384 x 128",
        "49,152",
        "4",
        "196,608",
        "normal 0.02",
    ]


def test_layers_that_differ_are_told_apart(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, "rnn_lm", "--set", "layers=3")
    assert cells(out, "cell.0.weight")[1] == "32 x 97"
    assert cells(out, "cell.1-2.weight")[1] == "32 x 64"


def test_rates_are_marked_as_not_trained(capsys: pytest.CaptureFixture[str]) -> None:
    out = shown(capsys, "char_gpt", "--set", "dropout=0.25")
    assert cells(out, "block.*.dropout1") == [
        "block.*.dropout1",
        "scalar",
        "1",
        "2",
        "2",
        "0.25, not trained",
    ]


@pytest.mark.parametrize(("model", "preset"), [(m.name, p.name) for m in MODELS for p in m.presets])
def test_every_preset_is_shown_and_as_json(
    model: str, preset: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = shown(capsys, model, "--preset", preset)
    answer = json.loads(shown(capsys, model, "--preset", preset, "--json"))
    count = answer["closed_form"]["value"]
    assert f" = {count:,}\n" in out
    found = {f["name"]: f["value"] for f in answer["figures"]}
    assert found["trainable parameters"] == count
    assert sum(answer["groups"].values()) == found["stored scalars"]
    sizes = 0
    for p in answer["parameters"]:
        size = p["times"]
        for n in p["shape"]:
            size *= n
        sizes += size
    assert sizes == found["stored scalars"]


def test_json_holds_the_growth(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("fno", "--preset", "wide", "--against", "burgers", "--json")
    against = json.loads(shown(capsys, *words))["against"]
    assert against["preset"] == "burgers"
    assert against["growth"]["trainable parameters"] == pytest.approx(528609 / 4193)


def test_settings_of_every_kind_are_read(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--set", "stride=2, 2", "--set", "stride=none", "--set", "input_bias=True")
    config = json.loads(shown(capsys, "vit", *words, "--json"))["config"]
    assert (config["stride"], config["input_bias"]) == (None, True)
    config = json.loads(shown(capsys, "mlp", "--set", "hidden=4,5", "--json"))["config"]
    assert config["hidden"] == [4, 5]
    config = json.loads(shown(capsys, "mlp", "--set", "hidden=", "--json"))["config"]
    assert config["hidden"] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "char_gpt --set width=30",
            "heads=4 does not divide width=30; valid: 1, 2, 3, 5, 6, 10, 15, 30",
        ),
        ("chargpt", "model 'chargpt' does not exist; did you mean 'char_gpt'? valid: mlp, resnet"),
        ("zzz", "model 'zzz' does not exist; valid: mlp, resnet"),
        (
            "char_gpt --preset karpaty",
            "preset of char_gpt 'karpaty' does not exist; did you mean 'karpathy'? valid: smoke,",
        ),
        ("char_gpt --against karpaty", "did you mean 'karpathy'? valid: smoke, karpathy"),
        ("gpt --set widht=3", "field of gpt 'widht' does not exist; did you mean 'width'? valid:"),
        ("gpt --set width", "--set 'width' must be FIELD=VALUE; valid: vocabulary, context"),
        ("gpt --set width=wide", "width='wide' must be a whole number; valid: 1 or more"),
        ("gpt --set bias=yes", "bias='yes' must be a truth value; valid: True, False"),
        ("gpt --set dropout=some", "dropout='some' must be a probability; valid: a number in [0"),
        ("mlp --set hidden=a,b", "hidden='a,b' must hold whole numbers; valid: each 1 or more"),
        ("gpt --set width=1e3", "width='1e3' must be a whole number"),
        ("gpt --batch 0", "--batch=0 must be a whole number; valid: 1 or more"),
        ("gpt --batch many", "whole number"),
        (f"mlp --set hidden={'9' * 30}", "valid: each 1 to 9223372036854775807"),
        (
            f"fno --set spatial={','.join(['9' * 18] * 20)} --set modes={','.join('1' * 20)}",
            "trainable parameters would be beyond 1e+300; valid: smaller sizes",
        ),
    ],
)
def test_what_cannot_be_is_2_with_the_reason(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["layout", *words.split(" ")]) == Status.USAGE
    printed = capsys.readouterr()
    assert said in printed.err
    assert not printed.out


def test_all_reasons_are_given_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--set", "width=30", "--set", "dropout=2", "--set", "vocabulary=0"]
    assert main(["layout", "char_gpt", *words]) == Status.USAGE
    lines = capsys.readouterr().err.splitlines()
    fields = [line.removeprefix("assay: ").split("=")[0] for line in lines]
    assert fields == ["heads", "dropout", "vocabulary"]


def _run(words: str, memory: int = 2**31) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "assay", "layout", *words.split()],
        capture_output=True,
        text=True,
        env={**ENVIRONMENT, "OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (memory, memory)),
    )


def test_650_gibibytes_of_parameters_are_counted_in_little_memory_and_time() -> None:
    start = time.perf_counter()
    done = _run("gpt --preset gpt3 --against course")
    seconds = time.perf_counter() - start
    assert done.returncode == 0, done.stderr
    assert "174,604,259,328" in done.stdout
    # Half a second on an idle core; the rest is left to busy machines.
    assert seconds < 10


def test_an_invalid_setting_imports_neither_tables_nor_the_campaign() -> None:
    code = (
        "import sys\nfrom assay.cli.main import main\n"
        "main(['layout', 'char_gpt', '--set', 'width=30'])\n"
        "print(sorted({'rich', 'hypothesis', 'torch', 'z3', 'sympy'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=ENVIRONMENT
    )
    assert done.stdout.strip() == "[]"


def test_models_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "models", "--json"]) == Status.HELD
    rows = json.loads(capsys.readouterr().out)
    assert [row["model"] for row in rows] == [m.name for m in MODELS]
    assert rows[3]["presets"] == "smoke, karpathy"
