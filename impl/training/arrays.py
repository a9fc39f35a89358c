"""Examples of the user's: two arrays of one .npz file, whose shapes are read before values."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.lib import format as npy

from assay.impl.training.data import DataError, Problem, split

NAMES = ("inputs", "targets")
LEAST = 5
"""Examples, so that one of five can be held out."""


class Header(NamedTuple):
    """What an array is, without its values."""

    shape: tuple[int, ...]
    dtype: np.dtype


@contextmanager
def _explained(file: Path) -> Iterator[None]:
    """DataError for what is no archive of arrays, or a broken one."""
    try:
        yield
    except (zipfile.BadZipFile, zlib.error, EOFError, ValueError) as error:
        raise DataError(
            f"{file} cannot be read as .npz ({error}); valid: what numpy.savez writes"
        ) from error


def headers(file: Path) -> dict[str, Header]:
    """What both arrays are. DataError when the file holds other ones, or is none of its kind."""
    with _explained(file), zipfile.ZipFile(file) as archive:
        found = {name.removesuffix(".npy") for name in archive.namelist()}
        missing = [name for name in NAMES if name not in found]
        if missing:
            raise DataError(
                f"{file} has no array {', '.join(missing)}; valid: {' and '.join(NAMES)}, as "
                "numpy.savez writes them"
            )
        return {name: _header(archive, name) for name in NAMES}


def _header(archive: zipfile.ZipFile, name: str) -> Header:
    with archive.open(f"{name}.npy") as stream:
        version = npy.read_magic(stream)
        read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, _, dtype = read(stream)
        return Header(shape, dtype)


def check(file: Path, name: str, found: Header, shape: tuple[int, ...], kinds: str) -> None:
    """DataError for an array of other examples than [N, *shape], or of other numbers."""
    if found.shape[1:] != shape or len(found.shape) != len(shape) + 1:
        wanted = ", ".join(["N", *map(str, shape)])
        raise DataError(f"{file}: {name} {list(found.shape)} must be examples; valid: [{wanted}]")
    if found.dtype.kind not in kinds:
        valid = "whole numbers" if "f" not in kinds else "real numbers"
        raise DataError(f"{file}: {name} of {found.dtype} must be numbers; valid: {valid}")
    if found.shape[0] < LEAST:
        raise DataError(f"{file}: {found.shape[0]} examples are too few; valid: {LEAST} or more")


def read(
    file: Path, inputs: tuple[int, ...], targets: tuple[int, ...], classes: int | None = None
) -> Problem:
    """Examples of these shapes. With ``classes`` targets are whole numbers below it, and become
    vectors with one 1.
    """
    found = headers(file)
    check(file, "inputs", found["inputs"], inputs, "fiu")
    check(file, "targets", found["targets"], targets, "fiu" if classes is None else "iu")
    sizes = [found[name].shape[0] for name in NAMES]
    if sizes[0] != sizes[1]:
        raise DataError(f"{file}: {sizes[0]} inputs and {sizes[1]} targets; valid: as many of both")
    with _explained(file), np.load(file, allow_pickle=False) as archive:
        x, y = (archive[name] for name in NAMES)
    for name, values in zip(NAMES, (x, y), strict=True):
        bad = int(values.size - np.isfinite(values).sum())
        if bad:
            raise DataError(f"{file}: {name} has {bad} numbers that are not finite; valid: none")
    if classes is not None and not 0 <= int(y.min()) <= int(y.max()) < classes:
        raise DataError(
            f"{file}: targets from {y.min()} to {y.max()} must be classes; "
            f"valid: 0 to {classes - 1} (classes={classes})"
        )
    wanted = y.astype(np.float64) if classes is None else np.eye(classes)[y]
    return split(str(file), x.astype(np.float64), wanted)
