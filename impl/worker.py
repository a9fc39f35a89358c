"""What a worker process does: load one backend, then run the calls that it is sent, until the line
closes.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import os
import pickle
import resource
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from assay.impl.adversarial_worker import Guard
from assay.impl.call import Call
from assay.impl.description import Description, describe
from assay.impl.loading import Target, TargetError, check_backend
from assay.impl.protocol import Backend, Unavailable
from assay.impl.runner import execute
from assay.impl.transport import Arena, Channel

_LOG_LIMIT = 1 << 20
_HEADROOM = 2 << 30
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG
_PERTURB = -6  # M_PERTURB
# The low byte decides what freed memory holds (0), its complement what fresh memory holds (0xFF:
# NaN in every format).
_POISON = 0x100


@dataclass(frozen=True)
class Start:
    """First message to a worker.

    pickled  the Target to load, or a pickled backend;  path, folder: where to find modules
    memory   bytes of address space; None: what is mapped once the backend is loaded, and 2 GiB; 0:
             no limit
    closed   in the adversarial mode, folders that the backend must not read; else None
    """

    pickled: bytes
    path: tuple[str, ...]
    folder: str
    memory: int | None
    closed: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Ready:
    """The backend is loaded."""

    description: Description


@dataclass(frozen=True)
class Watch:
    """Message to a worker: get ready to watch kernels. It answers with None.

    A profiler may load libraries when it is first used, for longer than any call may take.
    """


@dataclass(frozen=True)
class Refused:
    """The backend cannot be loaded."""

    message: str


@dataclass(frozen=True)
class Absent:
    """The backend cannot run on this machine."""

    error: Unavailable


def serve(line: int, arena: int, log: int) -> None:
    """Run in a process just forked; the arguments are descriptors."""
    _settle(log)
    channel = Channel(socket.socket(fileno=line), Arena(arena), copy=False)
    start: Start = channel.receive()
    guard = None if start.closed is None else Guard(start.closed)
    try:
        backend = _load(start)
    except TargetError as error:
        channel.send(Refused(str(error)))
        return
    except Unavailable as error:
        # A class that the backend derived from it could not be read on the other side.
        channel.send(Absent(Unavailable(error.reason, error.remedy)))
        return
    channel.send(Ready(describe(backend)))
    _run_calls(channel, backend, guard)


def _run_calls(channel: Channel, backend: Backend, guard: Guard | None) -> None:
    def starting(index: int) -> None:
        channel.arena.progress = index
        if guard is not None:
            guard.before_call()

    while True:
        try:
            message: Sequence[Call] | Watch = channel.receive()
        except EOFError:
            return
        if isinstance(message, Watch):
            _first_watch(backend)
            channel.send(None)
            continue
        calls = message
        replies = execute(backend, calls, starting=starting, with_memory=guard is not None)
        del message, calls
        if guard is not None:
            replies = guard.after_batch(replies)
        _trim_log()
        channel.send(replies)


def _first_watch(backend: Backend) -> None:
    """Watch nothing, once. What fails here fails in the call too, which says so."""
    with contextlib.suppress(Exception), backend.host().watch_kernels():
        pass


def _settle(log: int) -> None:
    """Own output, signals and allocator: nothing that the backend does reaches the user's
    terminal.
    """
    libc = ctypes.CDLL(None)
    with contextlib.suppress(AttributeError):
        libc.prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        libc.mallopt(_PERTURB, _POISON)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.close(nothing)
    os.close(log)
    sys.stdin = open(0, closefd=False)  # noqa: SIM115 - lives as long as the process
    sys.stdout = open(1, "w", buffering=1, closefd=False, errors="replace")  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, closefd=False, errors="replace")  # noqa: SIM115
    faulthandler.enable(file=sys.stderr)


def _load(start: Start) -> Backend:
    sys.path[:] = start.path
    with contextlib.suppress(OSError):
        os.chdir(start.folder)
    try:
        target = pickle.loads(start.pickled)
    except Exception as error:
        raise TargetError(
            f"the backend cannot be sent to a worker: {type(error).__name__}: {error}"
        ) from error
    if isinstance(target, Target):
        backend = target.load()
    else:
        backend = target
        check_backend(backend, type(backend).__name__)
    _one_thread()
    if backend.contract.device == "cpu":
        _limit_memory(start.memory)
    return backend


def _one_thread() -> None:
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)


def _limit_memory(limit: int | None) -> None:
    if limit == 0:
        return
    if limit is None:
        limit = _mapped_bytes() + _HEADROOM
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _mapped_bytes() -> int:
    try:
        with open("/proc/self/statm", "rb") as stream:
            return int(stream.read().split()[0]) * resource.getpagesize()
    except OSError:
        return _HEADROOM


def _trim_log() -> None:
    if os.fstat(1).st_size > _LOG_LIMIT:
        os.ftruncate(1, 0)
        os.lseek(1, 0, os.SEEK_SET)
