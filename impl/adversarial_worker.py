"""The worker's side of the adversarial mode: files that stay shut, clocks that lie, and functions
that must stay what they are.

All of it is set up before the backend is loaded. It stands against code that looks around in its
own process by Python's means. It is no sandbox against native code or other programs.
"""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from assay.impl.call import Reply

_READS = frozenset({"open", "os.link", "os.rename", "sqlite3.connect"})
_WATCHED = ("builtins", "math", "time", "numpy", "numpy.linalg", "numpy.testing", "torch.testing")
_CLOCKS = ("time", "monotonic", "perf_counter", "process_time")
_SLOW, _FAST = 1e-3, 1e3
_LONGEST_JUMP = 10 * 86_400 * 10**9
# numpy keeps freed blocks of up to this size, seven of each, and the allocator does not see them.
_CACHED_BYTES = 1024
_CACHED_EACH = 8


class Guard:
    """Everything that one worker does in the adversarial mode beyond running calls.

    closed  absolute paths of folders whose files must not be read
    """

    def __init__(self, closed: Sequence[str]) -> None:
        self._clocks = _Clocks()
        self._clocks.install()
        self._kept = tuple(_functions())
        _shut(tuple(closed))

    def before_call(self) -> None:
        """No call knows what time it is."""
        self._clocks.turn()

    def after_batch(self, replies: Sequence[Reply]) -> list[Reply]:
        """Replies with the functions that were replaced since the start as changed global state."""
        _spoil_cache(replies)
        replaced = tuple(kept.name for kept in self._kept if kept.replaced())
        if not replaced:
            return list(replies)
        return [
            replace(
                reply,
                hygiene=replace(
                    reply.hygiene, global_state=(*reply.hygiene.global_state, *replaced)
                ),
            )
            for reply in replies
        ]


def _shut(closed: tuple[str, ...]) -> None:
    """Refuse to open files below ``closed``, and what the system tells of other processes.

    Python has no means to take an audit hook away again.
    """
    own = str(os.getpid())

    def refuse(event: str, arguments: tuple[Any, ...]) -> None:
        if event in _READS and _is_shut(arguments[0], closed, own):
            raise PermissionError(
                f"{os.fspath(arguments[0])!r} is closed to a backend in the adversarial mode"
            )

    sys.addaudithook(refuse)


def _is_shut(place: Any, closed: tuple[str, ...], own: str) -> bool:
    if not isinstance(place, (str, bytes, os.PathLike)):
        return False
    path = os.path.realpath(os.fsdecode(place))
    if path.startswith("/proc/"):
        process = path.split("/")[2]
        return process.isdigit() and process != own
    return any(path == folder or path.startswith(folder + os.sep) for folder in closed)


class _Clocks:
    """The clocks of ``time``. Before every call they go on as they are, or from where they were
    last read and a thousand times slower, or from some later day and a thousand times faster.

    A kernel that tells a benchmark from a test by the time between calls, or that behaves until
    some day, takes one for the other. Clocks never stand still, nor go back.
    """

    def __init__(self) -> None:
        self._random = random.Random(os.urandom(16))
        self._clocks = {name: _Clock(getattr(time, f"{name}_ns")) for name in _CLOCKS}

    def install(self) -> None:
        """Put them in the place of the real ones."""
        for name, clock in self._clocks.items():
            setattr(time, name, clock.seconds)
            setattr(time, f"{name}_ns", clock.nanoseconds)

    def turn(self) -> None:
        """Another time and another pace, the same for all clocks."""
        pace = self._random.choice((1.0, _SLOW, _FAST))
        jump = self._random.randrange(_LONGEST_JUMP) if pace == _FAST else 0
        for clock in self._clocks.values():
            clock.turn(jump, pace)


class _Clock:
    def __init__(self, real: Callable[[], int]) -> None:
        self._real = real
        self._since = self._shown = self._read = real()
        self._pace = 1.0

    def nanoseconds(self) -> int:
        self._read = self._shown + int(self._pace * (self._real() - self._since))
        return self._read

    def seconds(self) -> float:
        return self.nanoseconds() / 1e9

    def turn(self, jump: int, pace: float) -> None:
        self._shown = self._read if pace == _SLOW else self.nanoseconds() + jump
        self._since, self._pace = self._real(), pace


@dataclass(frozen=True)
class _Kept:
    """A function or class that must stay what it is: where it is found, and its code."""

    name: str
    home: Any
    key: str
    value: Any
    code: Any

    def replaced(self) -> bool:
        return vars(self.home).get(self.key) is not self.value or _code(self.value) is not self.code


def _functions() -> Iterable[_Kept]:
    """The functions of libraries that compare and measure, and assay's own."""
    for module in [name for name in sys.modules if _is_watched(name)]:
        home = sys.modules[module]
        yield from _members(module, home)
        for name, value in list(vars(home).items()):
            if isinstance(value, type) and value.__module__ == module and "assay" in module:
                yield from _members(f"{module}.{name}", value)


def _is_watched(module: str) -> bool:
    return module in _WATCHED or module.startswith("assay.impl.")


def _members(name: str, home: Any) -> Iterable[_Kept]:
    for key, value in list(vars(home).items()):
        if callable(value):
            yield _Kept(f"{name}.{key}", home, key, value, _code(value))


def _code(value: Any) -> Any:
    return getattr(value, "__code__", None)


def _spoil_cache(replies: Sequence[Reply]) -> None:
    """Overwrite what numpy keeps of freed blocks of the outputs' sizes: an output that is never
    written shows.
    """
    sizes = {a.nbytes for r in replies for a in (*r.outputs.values(), *r.gradients.values())}
    for size in sizes:
        if 0 < size <= _CACHED_BYTES:
            held = [np.full(size, 0xFF, np.uint8) for _ in range(_CACHED_EACH)]
            del held
