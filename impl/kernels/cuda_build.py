"""Builds the CUDA C++ kernels with nvcc, once for each version of their source."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

HOME = Path(__file__).with_name("cuda")
SOURCES = ("softmax.cu", "scan.cu")
FLAGS = ("-O3", "-std=c++17", "-Xcompiler", "-fPIC,-Wall,-Wno-unknown-pragmas")


class BuildError(Exception):
    """nvcc failed; the message holds what it printed."""


def nvcc() -> str:
    """The compiler: from ``CUDA_HOME`` where that is set, else from the path; "" where none is."""
    home = os.environ.get("CUDA_HOME")
    return shutil.which("nvcc", path=os.path.join(home, "bin") if home else None) or ""


def compile_object(source: str, architecture: str, target: Path) -> None:
    """Compile one of ``SOURCES`` for ``architecture`` ("sm_90") to an object file.

    ValueError: no such source; BuildError: nvcc is missing or fails.
    """
    if source not in SOURCES:
        raise ValueError(f"source={source!r} is no kernel; valid: {', '.join(SOURCES)}")
    _run([f"-arch={architecture}", *FLAGS, "-c", str(HOME / source), "-o", str(target)])


def shared_object(architecture: str) -> Path:
    """The library of all kernels for ``architecture``, built where the cache has none of this
    source. BuildError: nvcc is missing or fails.
    """
    target = _cache() / f"assay-kernels-{architecture}-{_fingerprint()}.so"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        # Another process may build the same: each moves a whole file into place.
        with tempfile.TemporaryDirectory(dir=target.parent) as folder:
            built = Path(folder) / target.name
            sources = [str(HOME / name) for name in SOURCES]
            _run([f"-arch={architecture}", *FLAGS, "-shared", *sources, "-o", str(built)])
            built.replace(target)
    return target


def _run(arguments: Sequence[str]) -> None:
    compiler = nvcc()
    if not compiler:
        raise BuildError("nvcc is not on the path; install the CUDA toolkit or set CUDA_HOME")
    done = subprocess.run([compiler, *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"{compiler} failed: {done.stderr.strip() or done.stdout.strip()}")


def _cache() -> Path:
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "assay"


def _fingerprint() -> str:
    """Of the sources, the flags and the compiler."""
    digest = hashlib.sha256(" ".join((nvcc(), *FLAGS)).encode())
    for path in sorted(HOME.iterdir()):
        digest.update(path.name.encode() + path.read_bytes())
    return digest.hexdigest()[:16]
