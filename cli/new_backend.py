"""``assay new-backend``: an adapter to fill in, with its test and a CI workflow."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from importlib import resources
from pathlib import Path
from string import Template

from assay.cli import console
from assay.cli.command import Command, Status, UsageError, check_output


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("file", type=Path, metavar="FILE.py", help="the adapter file to write")
    parser.add_argument(
        "--host",
        choices=("torch", "numpy"),
        default="torch",
        help="whose arrays the kernel takes (default: %(default)s)",
    )


def _execute(args: Namespace) -> Status:
    adapter: Path = args.file
    if adapter.suffix != ".py" or not adapter.stem.isidentifier():
        raise UsageError(
            f"file={str(adapter)!r} must be a Python module's name, such as my_kernels.py"
        )
    check_output("file", adapter)
    files = {
        adapter: f"{args.host}_backend.py.tmpl",
        adapter.with_name(f"test_{adapter.name}"): "test.py.tmpl",
        adapter.with_name("assay-workflow.yml"): "workflow.yml.tmpl",
    }
    taken = [str(path) for path in files if path.exists()]
    if taken:
        raise UsageError(
            f"{', '.join(taken)}: already there, and nothing is overwritten; choose another FILE.py"
        )
    for path, template in files.items():
        path.write_text(_fill(template, adapter), encoding="utf-8")
    console.block(
        f"{adapter}: a correct plain attention; put your kernel in its place\n"
        + "\n".join(f"{path}" for path in files if path != adapter)
        + f"\nnext: assay run {adapter}:MyBackend"
    )
    return Status.HELD


def _fill(template: str, adapter: Path) -> str:
    text = resources.files("assay.cli").joinpath("templates", template).read_text(encoding="utf-8")
    return Template(text).substitute(file=adapter.name, path=adapter.as_posix())


COMMAND = Command(
    name="new-backend",
    summary="write an adapter to fill in, its test and a CI workflow",
    examples=(
        ("assay new-backend my_kernels.py", "for torch tensors"),
        ("assay new-backend my_kernels.py --host numpy", "for numpy arrays"),
    ),
    arguments=_arguments,
    execute=_execute,
)
