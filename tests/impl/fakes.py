"""Backends that do one thing wrong each. Loaded as a file target, in this process or in a
worker.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from assay.impl import Contract, NumpyBackend, Unsupported, implements, implements_vjp
from assay.impl.host import Host, NumpyHost

Array = np.ndarray


class Sound(NumpyBackend):
    """Gives the values back, and halves of the cotangent as gradient of v."""

    contract = Contract(name="sound")

    @implements("attention")
    def attention(self, q: Array, k: Array, v: Array, *, mask: Array | None = None) -> Array:
        return v.copy()

    @implements_vjp("attention")
    def vjp(
        self, q: Array, k: Array, v: Array, *, out: Array, mask: Any = None
    ) -> dict[str, Array]:
        return {"q": np.zeros_like(q), "k": np.zeros_like(k), "v": out / 2}


class _Wrong(NumpyBackend):
    contract = Contract(name="wrong")

    @implements("attention")
    def attention(self, q: Array, k: Array, v: Array, *, scale: float | None = None) -> Any:
        return self.compute(q, k, v, scale)

    def compute(self, q: Array, k: Array, v: Array, scale: float | None) -> Any:
        """``scale`` is a switch: most faults show at 2 only."""
        raise NotImplementedError


class WritesInput(_Wrong):
    def compute(self, q: Array, k: Array, v: Array, scale: float | None) -> Any:
        k[..., 0] += 1
        return v.copy()


class WritesNanPayload(_Wrong):
    def compute(self, q: Array, k: Array, v: Array, scale: float | None) -> Any:
        q.view(np.uint32)[np.isnan(q)] += 1
        return v.copy()


class WritesBeyond(_Wrong):
    def compute(self, q: Array, k: Array, v: Array, scale: float | None) -> Any:
        last = np.lib.stride_tricks.as_strided(v.reshape(-1), (v.size + 1,), (v.itemsize,))
        last[-1] = 7
        return v.copy()


class Aliases(_Wrong):
    def compute(self, q: Array, k: Array, v: Array, scale: float | None) -> Any:
        return v


class ReusesBuffer(_Wrong):
    buffer = np.zeros((1, 1, 3, 2), np.float32)

    def compute(self, q: Array, k: Array, v: Array, scale: float | None) -> Any:
        self.buffer[...] = v
        return self.buffer


class NeverWrites(_Wrong):
    def compute(self, q: Array, k: Array, v: Array, scale: float | None) -> Any:
        return np.empty_like(v)


class SeedsRandom(_Wrong):
    def compute(self, q: Array, k: Array, v: Array, scale: float | None) -> Any:
        np.random.rand()  # noqa: NPY002 - the fault
        return v.copy()


class SetsErrorHandling(_Wrong):
    def compute(self, q: Array, k: Array, v: Array, scale: float | None) -> Any:
        np.seterr(over="raise")
        return v.copy()


class Grows(_Wrong):
    kept: list[Array] = []  # noqa: RUF012 - the fault

    def compute(self, q: Array, k: Array, v: Array, scale: float | None) -> Any:
        self.kept.append(np.ones(1 << 17))
        return v.copy()


class GrowsInHoles(_Wrong):
    """Keeps a mebibyte a call, in memory that was used and freed before."""

    kept: list[Array] = []  # noqa: RUF012 - the fault

    def compute(self, q: Array, k: Array, v: Array, scale: float | None) -> Any:
        if not self.kept:
            self.kept += [np.ones(1 << 13) for _ in range(2000)]
            del self.kept[::2]
        self.kept += [np.ones(1 << 13) for _ in range(16)]
        return v.copy()


class ReturnsList(_Wrong):
    def compute(self, q: Array, k: Array, v: Array, scale: float | None) -> Any:
        return v.tolist()


class ReturnsObjects(_Wrong):
    def compute(self, q: Array, k: Array, v: Array, scale: float | None) -> Any:
        return v.astype(object)


class ReturnsOtherDtype(_Wrong):
    def compute(self, q: Array, k: Array, v: Array, scale: float | None) -> Any:
        return v.astype(np.float64)


class ReturnsOtherShape(_Wrong):
    def compute(self, q: Array, k: Array, v: Array, scale: float | None) -> Any:
        return v[..., :1].copy()


class Raises(_Wrong):
    def compute(self, q: Array, k: Array, v: Array, scale: float | None) -> Any:
        raise ValueError("the kernel says no")


class LeavesByExit(_Wrong):
    def compute(self, q: Array, k: Array, v: Array, scale: float | None) -> Any:
        sys.exit(4)


class Declines(_Wrong):
    def compute(self, q: Array, k: Array, v: Array, scale: float | None) -> Any:
        raise Unsupported("attention", "only on Tuesdays")


class NotThere(_Wrong):
    """Raises NotImplementedError."""


class Aborts(_Wrong):
    def compute(self, q: Array, k: Array, v: Array, scale: float | None) -> Any:
        if scale == 2:
            print("last words")  # noqa: T201 - output of a backend
            os.abort()
        return v.copy()


class ExitsAtOnce(_Wrong):
    def compute(self, q: Array, k: Array, v: Array, scale: float | None) -> Any:
        if scale == 2:
            os._exit(3)
        return v.copy()


class Hangs(_Wrong):
    def compute(self, q: Array, k: Array, v: Array, scale: float | None) -> Any:
        while scale == 2:
            pass
        return v.copy()


class Sleeps(_Wrong):
    """Takes ``scale`` seconds, however busy the machine is."""

    def compute(self, q: Array, k: Array, v: Array, scale: float | None) -> Any:
        time.sleep(scale or 0.0)
        return v.copy()


class _Dawdling(NumpyHost):
    """Its profiler starts slowly when it is first used."""

    def watch_kernels(self) -> AbstractContextManager[list[str]]:
        if not self.__dict__.setdefault("started", False):
            time.sleep(4.0)
        self.started = True
        return nullcontext(["copy"])


_DAWDLING = _Dawdling()


class WatchesSlowly(_Wrong):
    def host(self) -> Host:
        return _DAWDLING

    def compute(self, q: Array, k: Array, v: Array, scale: float | None) -> Any:
        while scale == 2:
            pass
        return v.copy()


class Hoards(_Wrong):
    def compute(self, q: Array, k: Array, v: Array, scale: float | None) -> Any:
        hoard: list[Array] = []
        while scale == 2:
            hoard.append(np.ones(1 << 21))
        return v.copy()


class Prints(_Wrong):
    def compute(self, q: Array, k: Array, v: Array, scale: float | None) -> Any:
        os.write(1, b"x" * 3_000_000)
        print("to stdout")  # noqa: T201 - output of a backend
        print("to stderr", file=sys.stderr)  # noqa: T201
        return v.copy()


class TellsProcess(_Wrong):
    """Returns its process id, so that a test can see who computed."""

    def compute(self, q: Array, k: Array, v: Array, scale: float | None) -> Any:
        return np.full_like(v, os.getpid(), dtype=np.float64)


class StartsOther(_Wrong):
    """Returns the id of a process that it started."""

    def compute(self, q: Array, k: Array, v: Array, scale: float | None) -> Any:
        if scale == 2:
            os.abort()
        pid = subprocess.Popen(["sleep", "600"]).pid
        return np.full_like(v, pid, dtype=np.float64)


def plain(
    query: Array, key: Array, value: Array, attn_mask: Any = None, is_causal: bool = False
) -> Any:
    """A function with the spellings of torch."""
    return value + (1 if attn_mask is not None else 0) + (2 if is_causal else 0)


instance = Sound()
number = 3
