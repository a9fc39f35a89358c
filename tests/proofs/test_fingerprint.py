"""The fingerprint changes with every source and version that an outcome rests on, and with no
other.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from assay.proofs import fingerprint as module
from assay.proofs.fingerprint import ROOT, fingerprint, sources, versions

MASKS = "assay.proofs.theorems.masks"
PRINT = f"from assay.proofs.fingerprint import fingerprint; print(fingerprint({MASKS!r}))"


def names(theorem: str) -> set[str]:
    return {path.relative_to(ROOT).as_posix() for path in sources(theorem)}


def test_sources_are_the_theorem_and_all_that_it_imports() -> None:
    found = names(MASKS)
    assert {"proofs/theorems/masks.py", "spec/masks.py", "spec/attention.py"} <= found
    assert "spec/scalars.py" in found, "imported by what is imported"
    assert "spec/__init__.py" in found
    assert "proofs/theorems/softmax_ieee.py" not in found


def test_the_machinery_counts() -> None:
    assert "proofs/solving.py" in names(module.MACHINERY)
    assert "proofs/crossing.py" in names(module.MACHINERY), "imported within a function"


def test_what_coq_reads_counts_for_its_theorems_alone() -> None:
    kernel = names("assay.proofs.theorems.kernel_checked")
    assert "proofs/coq/Softmax.v" in kernel
    assert "proofs/coq/Softmax.v" not in names(MASKS) | names(module.MACHINERY)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copy") / "assay"
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT, folder, ignore=skip)
    return folder


def taken(copy: Path) -> str:
    env = {**os.environ, "PYTHONPATH": str(copy.parent)}
    done = subprocess.run(
        [sys.executable, "-c", PRINT], env=env, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    ("file", "counts"),
    [
        ("spec/masks.py", True),
        ("spec/scalars.py", True),
        ("proofs/theorems/masks.py", True),
        ("proofs/scalars/terms.py", True),
        ("proofs/solving.py", True),
        ("proofs/theorems/softmax_ieee.py", False),
        ("spec/claims/hygiene.py", False),
    ],
)
def test_a_change_counts_where_it_takes_part(copy: Path, file: str, counts: bool) -> None:
    before, path = taken(copy), copy / file
    text = path.read_text()
    try:
        path.write_text(text + "\n# changed\n")
        assert (taken(copy) != before) is counts
    finally:
        path.write_text(text)


def test_the_version_of_coq_counts_for_its_theorems_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    theorems = (MASKS, "assay.proofs.theorems.kernel_checked")
    before = [fingerprint(name) for name in theorems]
    fingerprint.cache_clear()
    monkeypatch.setattr("assay.proofs.coqc.version", lambda: "0")
    try:
        assert [fingerprint(name) == b for name, b in zip(theorems, before, strict=True)] == [
            True,
            False,
        ]
    finally:
        fingerprint.cache_clear()


def test_versions_count(monkeypatch: pytest.MonkeyPatch) -> None:
    before = fingerprint(MASKS)
    fingerprint.cache_clear()
    monkeypatch.setattr(module, "versions", lambda: (*versions(), "z3-solver 0"))
    try:
        assert fingerprint(MASKS) != before
    finally:
        fingerprint.cache_clear()
