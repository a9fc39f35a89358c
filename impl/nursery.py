"""A process that imports the heavy libraries once, never computes, and forks workers.

It serves the process that started it and all that descend from it, which find it by an environment
variable. A worker lives as long as the connection on which it was asked for: when the asking
process dies, however, the worker is killed.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import os
import re
import selectors
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from typing import NoReturn

from assay.impl.protocol import HostName

_PRELOAD = {
    "numpy": ("numpy", "ml_dtypes", "assay.impl.worker", "assay.impl.numpy_backend"),
    "torch": (
        "numpy",
        "ml_dtypes",
        "assay.impl.worker",
        "assay.impl.torch_backend",
        "torch.profiler",
    ),
}
# JAX starts threads when it computes and warns of forks once it is loaded: each worker imports it.
_PRELOAD["jax"] = _PRELOAD["numpy"]
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_STATUS = struct.Struct("<i")
_LONGEST_ADDRESS = 100
_PATIENCE = 5.0
_locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)


def _variable(host: HostName, heavy: tuple[str, ...]) -> str:
    return re.sub(r"\W", "_", "_".join(("ASSAY_NURSERY", host, *heavy)).upper())


def ensure(host: HostName, heavy: tuple[str, ...] = ()) -> str:
    """Address of the nursery for ``host`` that has imported the modules ``heavy`` as well; it is
    started when this process and its ancestors have none.

    Start it before making a pool of processes, and all of them share one.
    """
    variable = _variable(host, heavy)
    with _locks[variable]:
        address = os.environ.get(variable, "")
        if not (address and _answers(address)):
            address = os.environ[variable] = _start(host, heavy)
        return address


def _answers(address: str) -> bool:
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(address)
        except OSError:
            return False
        return True


def _start(host: HostName, heavy: tuple[str, ...]) -> str:
    folder = tempfile.mkdtemp(prefix="assay-")
    if len(folder) > _LONGEST_ADDRESS:
        os.rmdir(folder)
        folder = tempfile.mkdtemp(prefix="assay-", dir="/tmp")
    address = os.path.join(folder, "s")
    code = (
        f"import sys; sys.path[:] = {sys.path!r}; "
        f"from assay.impl.nursery import main; main({host!r}, {heavy!r}, {address!r})"
    )
    # tcache would hand out freed memory without the poison that malloc puts on it.
    environment = {
        **os.environ,
        **dict.fromkeys(_THREADS, "1"),
        "GLIBC_TUNABLES": "glibc.malloc.tcache_count=0",
    }
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    atexit.register(_stop, process, os.getpid())
    assert process.stdout is not None
    if process.stdout.read(1) != b".":
        raise RuntimeError(f"the nursery for {host} did not start (exit status {process.wait()})")
    process.stdout.close()
    return address


def _stop(process: subprocess.Popen[bytes], owner: int) -> None:
    if os.getpid() != owner or process.stdin is None:
        return
    process.stdin.close()
    try:
        process.wait(2.0)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


class Child:
    """A worker that was asked for: its process id, and how it ended."""

    def __init__(
        self, host: HostName, heavy: tuple[str, ...], descriptors: tuple[int, ...]
    ) -> None:
        """``descriptors``: socket, arena and log of the worker. OSError when there is no nursery to
        be had.
        """
        self._line = socket.socket(socket.AF_UNIX)
        try:
            self._line.connect(ensure(host, heavy))
            socket.send_fds(self._line, [b"."], descriptors)
            self.pid = _STATUS.unpack(self._line.recv(_STATUS.size))[0]
        except struct.error as error:
            self._line.close()
            raise OSError("the nursery went away") from error
        except BaseException:
            self._line.close()
            raise

    def status(self, timeout: float) -> int | None:
        """Wait status once it has ended (as ``os.waitpid`` gives it); None: it still runs, or
        nobody knows.
        """
        self._line.settimeout(timeout)
        try:
            return int(_STATUS.unpack(self._line.recv(_STATUS.size))[0])
        except (OSError, struct.error):
            return None

    def close(self) -> None:
        """Hang up, which also ends it and what it started."""
        self._line.close()


class _Nursery:
    def __init__(self, address: str) -> None:
        self.selector = selectors.DefaultSelector()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(address)
        self.listener.listen(64)
        self.lines: dict[int, socket.socket] = {}
        ours, woken = socket.socketpair()
        ours.setblocking(False)
        woken.setblocking(False)
        self.woken, self.waker = ours, woken
        signal.set_wakeup_fd(woken.fileno(), warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.selector.register(self.listener, selectors.EVENT_READ)
        self.selector.register(self.woken, selectors.EVENT_READ)
        self.selector.register(0, selectors.EVENT_READ)

    def serve(self) -> None:
        """Until the process that started this one is gone."""
        while True:
            for key, _ in self.selector.select():
                if key.fileobj == 0:
                    return
                if key.fileobj is self.listener:
                    self._accept()
                elif key.fileobj is self.woken:
                    self._bury()
                else:
                    self._hang_up(key.data)

    def _accept(self) -> None:
        line, _ = self.listener.accept()
        line.settimeout(_PATIENCE)
        try:
            _, descriptors, _, _ = socket.recv_fds(line, 1, 3)
        except OSError:
            descriptors = []
        if len(descriptors) != 3:
            for descriptor in descriptors:
                os.close(descriptor)
            line.close()
            return
        pid = os.fork()
        if pid == 0:
            self._become_worker(line, descriptors)
        for descriptor in descriptors:
            os.close(descriptor)
        self.lines[pid] = line
        self.selector.register(line, selectors.EVENT_READ, pid)
        with contextlib.suppress(OSError):
            line.sendall(_STATUS.pack(pid))

    def _become_worker(self, line: socket.socket, descriptors: list[int]) -> NoReturn:
        try:
            os.setsid()
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            self.selector.close()
            for sock in (line, self.listener, self.woken, self.waker, *self.lines.values()):
                sock.close()
            from assay.impl.worker import serve

            serve(*descriptors)
        finally:
            os._exit(70)

    def _hang_up(self, pid: int) -> None:
        """Nothing is ever said on a worker's line: that it can be read means that it was closed."""
        line = self.lines.pop(pid, None)
        if line is None:  # buried by the same round of events
            return
        _kill(pid)
        self.selector.unregister(line)
        line.close()

    def _bury(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self.woken.recv(4096)
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            # What the worker started does not outlive it.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
            line = self.lines.pop(pid, None)
            if line is not None:
                self.selector.unregister(line)
                with contextlib.suppress(OSError):
                    line.sendall(_STATUS.pack(status))
                line.close()

    def end(self) -> None:
        """Kill the workers that are left."""
        signal.set_wakeup_fd(-1)
        for pid in self.lines:
            _kill(pid)


def _kill(pid: int) -> None:
    for kill in (os.killpg, os.kill):
        with contextlib.suppress(ProcessLookupError, PermissionError):
            kill(pid, signal.SIGKILL)


def main(host: HostName, heavy: tuple[str, ...], address: str) -> None:
    """The nursery's own process; standard input ends when the process that started it does."""
    nursery = _Nursery(address)
    try:
        for name in (*_PRELOAD[host], *heavy):
            # A library that is missing or broken is reported by the worker that needs it.
            with contextlib.suppress(Exception):
                importlib.import_module(name)
        os.write(1, b".")
        os.dup2(2, 1)
        nursery.serve()
    finally:
        nursery.end()
        shutil.rmtree(os.path.dirname(address), ignore_errors=True)
        # Taking down the preloaded libraries can take seconds, and nobody waits for it.
        os._exit(0)
