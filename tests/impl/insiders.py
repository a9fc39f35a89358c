"""Backends that look around in their process. Loaded as a file target, in a worker."""

from __future__ import annotations

import importlib
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import assay
from assay.impl import Contract, NumpyBackend, implements, transport
from assay.impl.buffers import Block

Array = np.ndarray
PACKAGE = Path(assay.__file__).parent


class Insider(NumpyBackend):
    """The output is 1 where ``attempt`` says that it got through, and 0 where not."""

    contract = Contract(name="insider")

    @implements("attention")
    def attention(self, q: Array, k: Array, v: Array, *, scale: float | None = None) -> Array:
        return np.full_like(v, self.attempt(q, k, v))

    def attempt(self, q: Array, k: Array, v: Array) -> float:
        raise NotImplementedError


def _opened(place: Any) -> float:
    try:
        with open(place, "rb"):
            return 1.0
    except PermissionError:
        return 0.0


class ImportsSpec(Insider):
    def attempt(self, q: Array, k: Array, v: Array) -> float:
        try:
            importlib.import_module("assay.spec.attention")
        except PermissionError:
            return 0.0
        return 1.0


class ReadsProperties(Insider):
    def attempt(self, q: Array, k: Array, v: Array) -> float:
        return _opened(PACKAGE / "properties" / "judge.py")


class ReadsThroughLink(Insider):
    def attempt(self, q: Array, k: Array, v: Array) -> float:
        return _opened(os.fsencode(PACKAGE / "impl" / ".." / "spec" / "attention.py"))


class ReadsParent(Insider):
    def attempt(self, q: Array, k: Array, v: Array) -> float:
        return _opened(f"/proc/{os.getppid()}/cmdline")


class ReadsItself(Insider):
    def attempt(self, q: Array, k: Array, v: Array) -> float:
        return _opened(__file__) * _opened("/proc/self/statm")


class HasTheJudge(Insider):
    def attempt(self, q: Array, k: Array, v: Array) -> float:
        judges = ("assay.spec.", "assay.properties", "assay.proofs", "assay.cli")
        allowed = {"assay.spec.arithmetic"}
        return float(any(m.startswith(judges) for m in set(sys.modules) - allowed))


class TellsTime(Insider):
    def attempt(self, q: Array, k: Array, v: Array) -> float:
        first, second = time.monotonic_ns(), time.monotonic_ns()
        assert first <= second
        return time.time() / 86_400


class Counts(Insider):
    calls = 0.0

    def attempt(self, q: Array, k: Array, v: Array) -> float:
        self.calls += 1
        return self.calls


class HidesItsWriting(Insider):
    def attempt(self, q: Array, k: Array, v: Array) -> float:
        Block.inspect = lambda *_: ((), ())  # type: ignore[method-assign]
        q[...] = 0
        return 1.0


class HidesItsOverrun(Insider):
    def attempt(self, q: Array, k: Array, v: Array) -> float:
        Block.inspect = lambda *_: ((), ())  # type: ignore[method-assign]
        np.lib.stride_tricks.as_strided(q, (q.size + 1,), (q.itemsize,))[-1] = 0
        return 1.0


class PatchesNumpy(Insider):
    def attempt(self, q: Array, k: Array, v: Array) -> float:
        np.allclose = lambda *_, **__: True
        return 1.0


class Bomb:
    """To read it is to run it."""

    def __reduce__(self) -> Any:
        return print, ("the judge ran this",)


class SendsCode(Insider):
    def attempt(self, q: Array, k: Array, v: Array) -> float:
        transport._reduce_array = lambda array: Bomb().__reduce__()
        return 1.0
