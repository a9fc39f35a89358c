"""What the documentation shows is what happens."""

from __future__ import annotations

import doctest
import importlib
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from assay.spec.ops import OPS
from tests.cli.samples import PLUGIN

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
FOLDERS = ("cli", "impl", "proofs", "properties", "spec", "zoo")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


# -- Doctests of every module

MODULES = sorted(
    ".".join(("assay", *file.relative_to(ROOT).with_suffix("").parts))
    for folder in FOLDERS
    for file in (ROOT / folder).rglob("*.py")
    if ">>>" in file.read_text() and "templates" not in file.parts
)


@pytest.mark.parametrize("name", MODULES)
def test_doctests_of(name: str) -> None:
    outcome = doctest.testmod(importlib.import_module(name.removesuffix(".__init__")))
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_doctests_are_found() -> None:
    assert "assay.spec.attention" in MODULES
    assert len(MODULES) >= 8


# -- Links and terms


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_notation_explains_every_dim_of_the_catalogue() -> None:
    rows = re.findall(r"^\| (`[^|]+) \|", (ROOT / "docs/notation.md").read_text(), re.M)
    explained = {letter for row in rows for letter in re.findall(r"`([^`]+)`", row)}
    dims = {d for op in OPS for i in op.inputs for d in i.dims}
    # A dim may be a number, or letters joined: I+Hd, Kt-1, Cin/G.
    letters = {letter for d in dims for letter in re.findall(r"\*?[A-Za-z]\w*", d)}
    assert letters - explained == set()


def test_trust_explains_every_class_of_evidence() -> None:
    from assay.proofs.obligation import STATUSES

    rows = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/trust.md").read_text(), re.MULTILINE)
    assert rows == sorted(STATUSES, key=rows.index)


# -- Commands and their output


@dataclass(frozen=True)
class Command:
    """A line after ``$`` and the lines that are shown below it."""

    text: str
    shown: tuple[str, ...]


def commands(block: str) -> list[Command]:
    """The commands of a console block."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)
    lines = [part.rstrip("\n").split("\n") for part in parts[1:]]
    return [Command(first, tuple(rest)) for first, *rest in lines]


def skeleton(line: str) -> str:
    """A line without what differs from run to run: numbers, ids and the drawn case."""
    line = re.sub(r"\[[A-Z]\w*=.*?\]", "[case]", line)
    line = re.sub(r"\b(replay|repro|campaign) [0-9a-f]{8}\b", r"\1 ID", line)
    line = re.sub(r"-?\b(\d+(\.\d+)?(e[+-]?\d+)?|nan|inf)\b", "N", line)
    return " ".join(line.split())


def missing(shown: tuple[str, ...], printed: str) -> list[str]:
    """Shown lines that were not printed, and printed ones for which not even a ``...`` stands."""
    actual = [skeleton(line) for line in printed.splitlines() if line.strip()]
    wanted = [skeleton(line) for line in shown if line not in ("", "...")]
    gone = [line for line in wanted if line not in actual]
    extra = [] if "..." in shown else [line for line in actual if line not in wanted]
    return gone + extra


def finding(shown: tuple[str, ...], printed: str) -> str | None:
    """Id of the printed finding that is like the first shown one."""
    first = next((skeleton(line) for line in shown if "replay: assay replay" in line), None)
    like = (line for line in printed.splitlines() if skeleton(line) == first)
    return next((line.rpartition(" ")[2] for line in like), None)


class Shell:
    """Runs commands one after another in a directory, with ``assay`` and ``python`` on the path."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.status = 0
        self.id = ""
        tools = directory / ".tools"
        tools.mkdir()
        self.env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "CI")}
        self.env |= {"PATH": f"{tools}:{os.environ['PATH']}", "COLUMNS": "120"}
        path = f'PYTHONPATH="{ROOT / "src"}"'
        scripts = {
            "assay": f'{path} exec "{sys.executable}" -m assay "$@"',
            "python": f'exec "{sys.executable}" "$@"',
            "pytest": f'{path} exec "{sys.executable}" -m pytest {PLUGIN} "$@"',
        }
        for name, script in scripts.items():
            (tools / name).write_text(f"#!/bin/sh\n{script}\n")
            (tools / name).chmod(0o755)

    def run(self, command: Command) -> str:
        """What one command prints; ``ID`` in it stands for the finding shown last."""
        text = re.sub(r"\bID\b", self.id, command.text)
        done = subprocess.run(
            ["bash", "-c", f"(exit {self.status}); {text}"],
            cwd=self.directory,
            env=self.env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        self.status = done.returncode
        self.id = finding(command.shown, done.stdout) or self.id
        return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("page", ["write-a-backend.md", "specification.md", "training.md"])
def test_a_page_does_what_it_shows(page: str, tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    for language, block in FENCE.findall((ROOT / "docs" / page).read_text()):
        if language == "python":
            first, _, code = block.partition("\n")
            (tmp_path / first.removeprefix("# ")).write_text(code)
        elif language == "console":
            for command in commands(block):
                printed = shell.run(command)
                assert not missing(command.shown, printed), f"$ {command.text}\n{printed}"


def test_a_shown_line_that_is_not_printed_is_noticed() -> None:
    line = "b attention.refines float32: out[0]=1, should be 2 [B=1] replay: assay replay 0123abcd"
    other = line.replace("[0]=1", "[3]=nan").replace("[B=1]", "[B=3 offset=1]")
    other = other.replace("0123abcd", "89abcdef")
    assert not missing((line,), other)
    assert finding((line,), f"first\n{other}\nlast") == "89abcdef"
    assert missing((line,), line.replace("refines", "offset"))
    assert missing((line,), f"{line}\nanother line")
    assert not missing((line, "..."), f"{line}\nanother line")
