"""The reproducers of the known findings: each fails by the fault that it is about, with torch
alone.
"""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from assay.properties.known import load

ROOT = Path(__file__).parent.parent
ENTRIES = load(ROOT / "known.toml").entries
SCRIPTS = sorted({entry.reproducer for entry in ENTRIES})
ALWAYS = {entry.reproducer for entry in ENTRIES if not entry.rare}
"""What shows on every processor and in every run; the rest may depend on either."""


def test_each_entry_names_a_version_and_a_reproducer_that_exists() -> None:
    assert all(entry.versions and (ROOT / entry.reproducer).is_file() for entry in ENTRIES)


def test_each_reproducer_belongs_to_an_entry() -> None:
    assert {str(p.relative_to(ROOT)) for p in ROOT.glob("docs/findings/*.py")} == set(SCRIPTS)


@pytest.mark.skipif(
    not version("torch").startswith("2.13."), reason="the entries are for torch 2.13"
)
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_reproducer_fails_and_says_what_is_wrong_without_assay(
    script: str, tmp_path: Path
) -> None:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    done = subprocess.run(
        [sys.executable, str(ROOT / script)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        timeout=120,
        check=False,
    )

    assert "assay" not in (ROOT / script).read_text()
    if done.returncode or script in ALWAYS:
        assert done.returncode == 1
        assert "AssertionError: " in done.stderr
