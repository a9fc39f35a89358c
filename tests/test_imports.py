"""The import arrows hold, and each contract that states one can fail."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "assay"
CONFIG = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
CONTRACTS = {contract["id"]: contract for contract in CONFIG["contracts"]}

# (contract, file that gets the import, the import): each must break exactly that contract.
PLANTS = (
    ("layers", "spec/masks.py", "import assay.impl.call"),
    ("layers", "spec/masks.py", "import assay.proofs"),
    ("layers", "impl/call.py", "import assay.properties.results"),
    ("layers", "impl/call.py", "import assay.cli"),
    ("layers", "properties/results.py", "import assay.zoo"),
    ("layers", "properties/results.py", "import assay.proofs"),
    ("layers", "zoo/__init__.py", "import assay.proofs"),
    ("layers", "zoo/__init__.py", "import assay.cli"),
    ("layers", "proofs/__init__.py", "import assay.zoo"),
    ("proofs-know-the-spec-only", "proofs/__init__.py", "import assay.impl.call"),
    ("proofs-know-the-spec-only", "proofs/__init__.py", "import assay.properties.results"),
    ("impl-never-calls-the-spec", "impl/call.py", "import assay.spec.attention"),
    ("impl-never-calls-the-spec", "impl/call.py", "import assay.spec.ops"),
    ("spec-is-pure", "spec/masks.py", "import torch"),
    ("spec-is-pure", "spec/masks.py", "def late():\n    import sympy"),
    ("torch-in-its-backends", "impl/call.py", "def late():\n    import torch"),
    ("torch-in-its-backends", "properties/results.py", "import torch.nn"),
    ("jax-and-onnx-in-their-backends", "impl/host.py", "def late():\n    import jax.numpy"),
    ("jax-and-onnx-in-their-backends", "properties/results.py", "import onnxruntime"),
    ("foreign-models-in-their-backends", "impl/host.py", "def late():\n    import transformers"),
    ("solvers-in-proofs", "properties/results.py", "import z3"),
    ("rendering-in-cli", "impl/call.py", "import rich.table"),
)


def lint(folder: Path, contract: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run import-linter on the package below ``folder``, with this project's contracts."""
    code = "from importlinter.cli import lint_imports_command as run; run()"
    options = ["--no-cache", str(ROOT / "pyproject.toml")]
    if contract is not None:
        options += ["--contract", contract]
    return subprocess.run(
        [sys.executable, "-c", code, *options],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package as real files, free to be spoiled."""
    folder = tmp_path_factory.mktemp("package")
    shutil.copytree(PACKAGE, folder / "assay", ignore=shutil.ignore_patterns("__pycache__"))
    return folder


@pytest.fixture
def planted(copy: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """The copy with one import added; taken out again afterwards."""
    file, line = request.param
    target = copy / "assay" / file
    sound = target.read_text()
    target.write_text(f"{sound}\n{line}\n")
    yield copy
    target.write_text(sound)


def test_all_contracts_are_kept(copy: Path) -> None:
    done = lint(copy)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(CONTRACTS)} kept, 0 broken" in done.stdout


@pytest.mark.parametrize(
    ("contract", "planted"),
    [pytest.param(c, (file, line), id=f"{c}: {file} {line}") for c, file, line in PLANTS],
    indirect=["planted"],
)
def test_contract_breaks_when_a_forbidden_import_is_planted(contract: str, planted: Path) -> None:
    done = lint(planted, contract)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "0 kept, 1 broken" in done.stdout


def test_every_contract_has_a_plant() -> None:
    assert {contract for contract, _, _ in PLANTS} == set(CONTRACTS)


def test_every_folder_is_a_layer() -> None:
    layers = {name.strip() for line in CONTRACTS["layers"]["layers"] for name in line.split("|")}
    assert layers == {path.name for path in PACKAGE.iterdir() if path.is_dir()} - {"__pycache__"}


def foreign_imports(source: str) -> set[str]:
    """Top-level names of all packages imported in ``source``, the standard library's left out."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or ".")
    return {name.partition(".")[0] for name in names} - sys.stdlib_module_names


@pytest.mark.parametrize("file", sorted((ROOT / "spec").rglob("*.py")), ids=lambda p: p.name)
def test_spec_imports_numpy_and_jaxtyping_only(file: Path) -> None:
    assert foreign_imports(file.read_text()) <= {"assay", "numpy", "jaxtyping"}


def test_foreign_imports_sees_late_ones() -> None:
    assert foreign_imports("def f():\n    from scipy.special import erf") == {"scipy"}


HEAVY = {"cvc5", "flint", "hypothesis", "jinja2", "matplotlib", "rich", "sympy", "torch", "z3"}


def modules_after(code: str) -> set[str]:
    """Top-level names of the modules loaded once ``code`` has run in a fresh interpreter."""
    script = f"import sys\n{code}\nprint(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    return {name.partition(".")[0] for name in done.stdout.split()}


@pytest.mark.parametrize(
    "code", ["import assay", "import assay.impl", "import assay.cli.main; assay.cli.main.parser()"]
)
def test_start_up_loads_nothing_heavy(code: str) -> None:
    assert not modules_after(code) & HEAVY


def test_modules_after_sees_a_heavy_import() -> None:
    assert modules_after("import rich") & HEAVY == {"rich"}


# Files that import a library, and so may import torch with it.
LIBRARIES = ("torch_", "onnx_", "jax_", "triton_", "cuda_", "transformers_", "mambapy_")


def test_everything_but_torch_backends_loads_without_torch() -> None:
    folders = [path.resolve() for path in PACKAGE.iterdir() if path.is_symlink()]
    files = [f.relative_to(ROOT) for folder in folders for f in folder.rglob("*.py")]
    names = [
        ".".join(("assay", *f.with_suffix("").parts)).removesuffix(".__init__")
        for f in files
        if not f.stem.startswith(LIBRARIES)
    ]
    assert len(names) > 20
    assert "torch" not in modules_after("\n".join(f"import {name}" for name in names))
