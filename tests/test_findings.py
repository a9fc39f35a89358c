"""The reproducers of the known findings: each fails by the fault that it is about, with its
library alone.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from assay.properties.known import load

ROOT = Path(__file__).parent.parent
ENTRIES = load(ROOT / "known.toml").entries
SCRIPTS = sorted({entry.reproducer for entry in ENTRIES})
LIBRARIES_OF = {
    script: {
        name: glob
        for entry in ENTRIES
        if entry.reproducer == script
        for name, glob in entry.versions.items()
        if name != "cpu"
    }
    for script in SCRIPTS
}
"""Each library that a script needs, and the versions that its entries speak of. On another
processor than theirs a script runs too, and may find nothing.
"""
ALWAYS = {entry.reproducer for entry in ENTRIES if not entry.rare}
"""What shows on every processor and in every run; the rest may depend on either."""


def _installed(name: str, glob: str) -> bool:
    try:
        return fnmatchcase(version(name), glob)
    except PackageNotFoundError:
        return False


def test_each_entry_names_a_version_and_a_reproducer_that_exists() -> None:
    assert all(entry.versions and (ROOT / entry.reproducer).is_file() for entry in ENTRIES)


def test_each_reproducer_belongs_to_an_entry() -> None:
    assert {str(p.relative_to(ROOT)) for p in ROOT.glob("docs/findings/*.py")} == set(SCRIPTS)


_FORKS = """
import json, os, runpy, sys
import {library}
for line in sys.stdin:
    script, folder, log = json.loads(line)
    child = os.fork()
    if not child:
        os.chdir(folder)
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT), 2)
        sys.stdout, sys.argv = sys.stderr, [script]
        runpy.run_path(script, run_name="__main__")
        sys.exit()
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Runs each script in a process of its own, which starts with the library imported."""


@pytest.fixture(scope="module")
def python() -> Iterator[Callable[[str, Path], tuple[int, str]]]:
    """Runs a script in an empty folder: its status and what it wrote to stderr. Most scripts are
    about torch, whose import takes far longer than they do.
    """
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    started: dict[str, subprocess.Popen[str]] = {}

    def run(script: str, folder: Path) -> tuple[int, str]:
        imports = re.search(r"^(import|from) torch\b", (ROOT / script).read_text(), re.MULTILINE)
        library = "torch" if imports else "sys"
        if library not in started:
            started[library] = subprocess.Popen(
                [sys.executable, "-c", _FORKS.format(library=library)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env=environment,
            )
        server, log = started[library], folder / "stderr"
        assert server.stdin is not None
        assert server.stdout is not None
        print(
            json.dumps([str(ROOT / script), str(folder), str(log)]), file=server.stdin, flush=True
        )
        return int(server.stdout.readline()), log.read_text()

    yield run
    for server in started.values():
        server.communicate()


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_reproducer_fails_and_says_what_is_wrong_without_assay(
    script: str, python: Callable[[str, Path], tuple[int, str]], tmp_path: Path
) -> None:
    wanted = LIBRARIES_OF[script]
    missing = [f"{name} {glob}" for name, glob in wanted.items() if not _installed(name, glob)]
    if missing:
        pytest.skip(f"the entry is for {', '.join(missing)}")
    status, said = python(script, tmp_path)

    assert "assay" not in (ROOT / script).read_text()
    if status or script in ALWAYS:
        assert status == 1
        assert "AssertionError: " in said
