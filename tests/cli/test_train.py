"""train: every model learns, theory's values are checked, what cannot be is refused and why."""

from __future__ import annotations

import json
import subprocess
import sys
from argparse import Namespace
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.cli import configuration
from assay.cli.command import Status
from assay.cli.main import main
from assay.cli.training import checks, learning, plan
from assay.cli.training.tasks import ALIASES, TASKS
from assay.impl.registry import Builtin
from assay.impl.training.torch_trainer import TorchTrainer
from assay.spec.models.catalogue import model

SRC = str(Path(__file__).resolve().parents[2] / "src")
FAST = {
    "gpt": ["--set", "context=8", "--set", "layers=1", "--set", "width=16"],
    "mamba_lm": ["--set", "hidden=8", "--set", "states=4"],
}
each_task = pytest.mark.parametrize("name", TASKS)


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def options(name: str, *settings: str, **changed: Any) -> Namespace:
    given = {"preset": None, "steps": None, "batch": None, "lr": None, "seed": 0, **changed}
    return Namespace(model=name, settings=list(settings), **given)


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["train", *words]) == Status.USAGE
    printed = capsys.readouterr()
    assert not printed.out
    return printed.err


# -- What is trained


@each_task
def test_a_few_steps_of_every_model(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = [*FAST.get(name, []), "--steps", "2", "--log", "log.json"]
    status = main(["train", name, *words])
    out = capsys.readouterr().out
    log = json.loads(Path("log.json").read_text())

    assert status == (Status.HELD if log["met"] else Status.FINDINGS)
    assert len(log["losses"]) == 2
    assert log["model"] == name
    assert log["one_step"]["held"]
    assert log["one_step"]["bounded"] == log["one_step"]["numbers"]
    assert f"{log['before']:.4f} before, {log['after']:.4f} after" in out
    assert f"bar: {log['bar']['loss']:.4f}" in out
    assert "torch.models" in out
    assert "model.one_step" in out
    if log["data"]["alphabet"]:
        first = log["first"]
        assert first["low"] <= first["loss"] <= first["high"]
        assert len(log["sample"]) == learning.SAMPLE
        assert "sample:" in out


@pytest.mark.parametrize("alias", ALIASES)
def test_short_names(alias: str) -> None:
    assert plan.plan(options(alias)).name == f"{alias}_lm"


def test_the_same_seed_gives_the_same_losses_and_another_seed_others() -> None:
    def losses(seed: int) -> tuple[float, ...]:
        run = plan.plan(options("fno", steps=3, seed=seed))
        return learning.learn(run, plan.problem_of(run, None)).losses

    assert losses(1) == losses(1)
    assert losses(1) != losses(2)


@pytest.mark.slow
@each_task
def test_every_model_is_below_its_bar(name: str) -> None:
    run = plan.plan(options(name))
    outcome = learning.learn(run, plan.problem_of(run, None))
    assert outcome.met
    assert outcome.after < outcome.before


def test_a_bar_that_is_not_met_is_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "rnn", "--steps", "1"]) == Status.FINDINGS
    assert "the loss is not below it" in capsys.readouterr().out


def test_a_loss_that_is_not_finite_ends_the_steps(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--lr", "1e30", "--steps", "50", "--log", "log.json"]
    assert main(["train", "lstm_regression", *words]) == Status.FINDINGS
    assert "a smaller rate than --lr=1e+30 may help" in capsys.readouterr().out
    assert len(json.loads(Path("log.json").read_text())["losses"]) < 50


# -- Data of the user's


def test_a_corpus_of_the_users(capsys: pytest.CaptureFixture[str]) -> None:
    Path("corpus.txt").write_text("to be or not to be\n" * 40, encoding="utf-8")
    words = ["--data-file", "corpus.txt", "--steps", "60", "--log", "log.json"]
    assert main(["train", "rnn", *words]) == Status.HELD
    log = json.loads(Path("log.json").read_text())
    assert log["data"] == {
        "origin": "corpus.txt",
        "learnt": 684 - 16,
        "held": 4,
        "alphabet": "\n benort",
        "floor": None,
    }
    assert set(log["sample"]) <= set("\n benort")
    assert "floor" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "inputs", "targets"),
    [
        ("resnet", (20, 3, 8, 8), (20,)),
        ("lstm_regression", (20, 16, 1), (20, 16, 1)),
        ("fno", (20, 32, 1), (20, 32, 1)),
    ],
)
def test_arrays_of_the_users(name: str, inputs: tuple[int, ...], targets: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(10, size=targets) if name == "resnet" else rng.standard_normal(targets)
    np.savez("data.npz", inputs=rng.standard_normal(inputs), targets=y)
    words = ["--data-file", "data.npz", "--steps", "2", "--log", "log.json"]
    assert main(["train", name, *words]) in (Status.HELD, Status.FINDINGS)
    log = json.loads(Path("log.json").read_text())
    assert (log["data"]["learnt"], log["data"]["held"]) == (16, 4)


# -- What is refused


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            "chargpt",
            "model to train 'chargpt' does not exist; did you mean 'char_gpt'? valid: char",
        ),
        ("mlp", "model to train 'mlp' does not exist"),
        ("gpt --preset curse", "preset of gpt 'curse' does not exist; did you mean 'course'?"),
        ("gpt --set width=30", "heads=4 does not divide width=30; valid: 1, 2, 3, 5, 6, 10, 15"),
        ("gpt --set widht=3", "field of gpt 'widht' does not exist; did you mean 'width'?"),
        ("gpt --steps 0", "--steps=0 must be a whole number; valid: 1 or more"),
        ("gpt --batch 0", "--batch=0 must be a whole number; valid: 1 or more"),
        ("gpt --steps many", "'many' must be a whole number"),
        ("gpt --lr 0", "'0' must be a number above 0, such as 0.001"),
        ("gpt --lr nan", "'nan' must be a number above 0"),
        ("gpt --seed -1", "must be a whole number"),
        ("gpt --log absent/log.json", "--log='absent/log.json' must be a file in a directory"),
        ("gpt --preset gpt3", "GiB of this machine (assay layout gpt shows what sizes cost)"),
        ("rnn --data-file absent.txt", "absent.txt: No such file or directory"),
        ("rnn --set vocabulary=5", "27 distinct characters exceed vocabulary=5, from"),
        ("vit --set classes=99", "classes=99 cannot be told apart by shape and colour"),
        ("resnet --set spatial=9", "spatial=(9,) has no shapes; valid: two extents of 4 or more"),
        ("fno --set spatial=8,8 --set modes=2,2", "is no grid for the equation; valid: one extent"),
    ],
)
def test_what_cannot_be_is_2_with_the_reason(
    words: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused(capsys, *words.split())


@pytest.mark.parametrize(
    ("name", "raw", "said"),
    [
        ("rnn", b"", "corpus: 0 bytes must be a text"),
        ("rnn", b"ab\xff", "corpus: byte 2 (0xff) is not UTF-8"),
        ("gpt", b"abc" * 100, "300 characters are too few for context=128; valid: 1290 or more"),
        ("fno", b"text", "corpus cannot be read as .npz"),
    ],
)
def test_data_that_cannot_be_learnt_is_2_before_anything_is_allocated(
    name: str,
    raw: bytes,
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def made(*_: object, **__: object) -> None:
        raise AssertionError("a model was made")

    monkeypatch.setattr(TorchTrainer, "__init__", made)
    Path("corpus").write_bytes(raw)
    assert said in refused(capsys, name, "--data-file", "corpus")


def test_an_invalid_setting_imports_neither_torch_nor_tables() -> None:
    code = (
        "import sys\nfrom assay.cli.main import main\n"
        "main(['train', 'char_gpt', '--set', 'width=30'])\n"
        "print(sorted({'torch', 'z3', 'sympy', 'matplotlib'} & set(sys.modules)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": SRC}
    )
    assert done.stdout.strip() == "[]"


def test_sizes_that_torch_has_no_layers_for(capsys: pytest.CaptureFixture[str]) -> None:
    np.savez("data.npz", inputs=np.zeros((5, 3, 2, 2, 2, 2)), targets=np.zeros(5, np.int64))
    words = ("--set", "spatial=2,2,2,2", "--data-file", "data.npz")
    assert "torch.models refuses this model: axes=4" in refused(capsys, "resnet", *words)


def test_without_torch_the_command_that_installs_it_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Builtin, "missing", ("torch",))
    assert main(["train", "rnn"]) == Status.UNANSWERED
    assert "pip install 'assay[torch]'" in capsys.readouterr().err


# -- Theory


@each_task
def test_the_step_is_the_specs_for_every_preset(name: str) -> None:
    for preset in model(name).presets:
        run = plan.Run(configuration.choose(name, preset.name, []), TASKS[name], 0)
        step = checks.check_step(run, plan.contracts_of(run)[-1].contract)
        assert step.held
        assert step.bounded == step.numbers > 40


@each_task
def test_a_step_of_another_rate_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = TorchTrainer.__init__

    def other(self: TorchTrainer, *args: Any, options: dict[str, Any], **more: Any) -> None:
        made(self, *args, options={**options, "lr": options["lr"] * 1.001}, **more)

    monkeypatch.setattr(TorchTrainer, "__init__", other)
    run = plan.plan(options(name))
    assert not checks.check_step(run, plan.contracts_of(run)[-1].contract).held


def test_means_that_are_forgotten_after_a_step_are_noticed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    step = TorchTrainer.step

    def forgetful(self: TorchTrainer, *args: Any, **more: Any) -> float:
        loss = step(self, *args, **more)
        self.optimizer.state.clear()
        return loss

    monkeypatch.setattr(TorchTrainer, "step", forgetful)
    assert main(["train", "lstm_regression"]) == Status.FINDINGS
    assert "failed by this trainer on a small lstm_regression" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["char_gpt", "gpt", "rnn_lm", "lstm_lm", "mamba_lm"])
def test_first_losses_of_several_seeds(name: str) -> None:
    for seed in range(3):
        run = plan.plan(options(name, *FAST.get(name, [])[1::2], seed=seed))
        trainer = learning.trainer_of(run)
        inputs = plan.problem_of(run, None).held.inputs
        first = checks.check_first_loss(name, run.chosen.config, trainer, inputs)
        assert first is not None
        assert first.held


def test_a_first_state_of_unit_deviation_is_noticed() -> None:
    run = plan.plan(options("char_gpt"))
    trainer, inputs = learning.trainer_of(run), plan.problem_of(run, None).held.inputs
    wild = np.random.default_rng(0).standard_normal(len(trainer.state())).astype(np.float32)
    trainer.held.write(trainer.held.like.new_tensor(wild))
    first = checks.check_first_loss(run.name, run.chosen.config, trainer, inputs)
    assert first is not None
    assert not first.held


def test_a_tied_glorot_table_has_no_theorem() -> None:
    run = plan.plan(options("char_gpt", "tied=True", "initialisation=glorot"))
    trainer, inputs = learning.trainer_of(run), plan.problem_of(run, None).held.inputs
    assert checks.check_first_loss(run.name, run.chosen.config, trainer, inputs) is None


def test_the_check_of_a_step_keeps_every_option() -> None:
    config: Any = configuration.choose(
        "char_gpt", "karpathy", ["activation=silu", "tied=true", "pre_norm=false"]
    ).config
    small: Any = checks.small(config)
    sizes = {f.name: getattr(config, f.name) for f in fields(config) if f.name in checks.SMALL}
    assert small.width == checks.SMALL["width"]
    assert replace(small, **sizes) == config
