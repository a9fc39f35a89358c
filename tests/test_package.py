"""What is built holds every module, and works from where it is installed."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("cli", "impl", "proofs", "properties", "spec", "zoo")


def run(*command: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """Run a command; its output is shown when it fails."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | env,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def checkout(target: Path) -> Path:
    """A copy of what the package is built from, its links kept as links."""
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    for name in (*FOLDERS, "src"):
        shutil.copytree(ROOT / name, target / name, symlinks=True, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, target / name)
    return target


def sources() -> set[str]:
    """Every file that an installed package must hold, as a path below site-packages."""
    files = {f"assay/{f.name}" for f in (ROOT / "src/assay").iterdir() if f.is_file()}
    for folder in FOLDERS:
        for file in (ROOT / folder).rglob("*"):
            if file.is_file() and "__pycache__" not in file.parts:
                files.add(f"assay/{file.relative_to(ROOT)}")
    return files


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a source distribution, and the wheel that was built from it."""
    source = checkout(tmp_path_factory.mktemp("checkout"))
    run(sys.executable, "-m", "build", "--no-isolation", cwd=source)
    return source / "dist"


def test_wheel_holds_exactly_the_package(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    held = {n for n in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in n}
    assert held == sources()
    assert "assay/py.typed" in held


def test_source_distribution_holds_the_package_and_the_licence(built: Path) -> None:
    (archive,) = built.glob("*.tar.gz")
    with tarfile.open(archive) as tar:
        held = {name.partition("/")[2] for name in tar.getnames()}
    assert {f"src/{name}" for name in sources()} <= held
    assert "LICENSE" in held


def test_installed_wheel_runs_away_from_the_checkout(built: Path, tmp_path: Path) -> None:
    (wheel,) = built.glob("*.whl")
    pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index")
    run(*pip, "--target", tmp_path / "site", wheel, cwd=tmp_path)
    code = "import assay.spec.attention as a; print(a.__file__)"
    done = run(sys.executable, "-c", code, cwd=tmp_path, PYTHONPATH=str(tmp_path / "site"))
    assert Path(done.stdout.strip()) == tmp_path / "site/assay/spec/attention.py"
    command = tmp_path / "site/bin/assay"
    shown = run(sys.executable, command, "--help", cwd=tmp_path, PYTHONPATH=str(tmp_path / "site"))
    assert "usage: assay" in shown.stdout


def test_import_names_the_folder_that_is_missing(tmp_path: Path) -> None:
    package = checkout(tmp_path) / "src" / "assay"
    (package / "spec").unlink()
    # What git writes in a checkout without symbolic links: a file that holds the link's target.
    (package / "spec").write_text("../../spec")
    done = subprocess.run(
        [sys.executable, "-c", "import assay"],
        env={**os.environ, "PYTHONPATH": str(package.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "lacks its folders spec." in done.stderr
    assert "core.symlinks" in done.stderr


def test_every_dependency_is_pinned() -> None:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if not line.startswith("#")]
    assert all(line.count("==") == 1 for line in pins)
    assert "torch==2.13.0" in pins
