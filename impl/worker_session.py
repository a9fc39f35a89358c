"""A session whose backend lives in a worker process, which may crash, hang and be replaced."""

from __future__ import annotations

import os
import pickle
import signal
import socket
import sys
from collections.abc import Sequence
from dataclasses import replace
from types import TracebackType

from assay.impl.call import Call, Failure, Reply
from assay.impl.description import Description
from assay.impl.loading import Target, TargetError
from assay.impl.nursery import Child
from assay.impl.protocol import Backend, HostName, Unavailable
from assay.impl.transport import Arena, Channel, Forged, anonymous_file
from assay.impl.worker import Absent, Ready, Refused, Start, Watch

LOAD_TIMEOUT = 60.0
WATCH_TIMEOUT = 120.0
"""For the first use of a profiler, which is no call: far more than the ten seconds that torch's
takes on a busy machine.
"""
_LOG_TAIL = 4096
_STATUS_WAIT = 5.0


class _Lost(Exception):
    """The worker died or was killed; ``failure`` says why."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class WorkerSession:
    """Runs calls in a worker; after a crash, a hang or an exhausted memory the next call gets a new
    one.

    closed  folders that the backend must not read, which makes the worker a guarded one; None: an
            ordinary worker
    """

    def __init__(
        self,
        target: Target | Backend,
        *,
        timeout: float,
        memory: int | None,
        closed: tuple[str, ...] | None = None,
    ) -> None:
        self._timeout = timeout
        self._closed = closed
        self._host: HostName = (
            target.host_hint() if isinstance(target, Target) else target.host_name
        )
        self._heavy = target.heavy if isinstance(target, Target) else ()
        self._name = target.text if isinstance(target, Target) else type(target).__name__
        self._memory = memory
        try:
            self._pickled = pickle.dumps(target)
        except Exception as error:
            raise TargetError(
                f"target={self._name!r} is an object that cannot be sent to a worker ({error}); "
                "run it with isolate=False, or name it as module:attr or file.py:attr"
            ) from error
        self._worker: _Worker | None = None
        self.description: Description = self._start()

    def _start(self) -> Description:
        self._worker = worker = _Worker(self._host, self._heavy, trusted=self._closed is None)
        start = Start(self._pickled, tuple(sys.path), os.getcwd(), self._memory, self._closed)
        try:
            worker.channel.send(start)
            answer = worker.receive(LOAD_TIMEOUT, "load the target")
        except _Lost as lost:
            self.close()
            trace = f"\n{lost.failure.trace}" if lost.failure.trace else ""
            raise TargetError(
                f"target={self._name!r} cannot be loaded: {lost.failure.message}{trace}"
            ) from lost
        except BaseException:
            self.close()
            raise
        if isinstance(answer, Refused):
            self.close()
            raise TargetError(answer.message)
        if isinstance(answer, Absent):
            self.close()
            raise answer.error
        assert isinstance(answer, Ready)
        return answer.description

    def run(self, calls: Sequence[Call]) -> list[Reply]:
        """Run ``calls`` in the worker.

        A call that takes the worker along ends the batch: the ones before it are run again, the
        ones after it are not.
        """
        try:
            if self._worker is None:
                self._start()
            assert self._worker is not None
            if any(call.witness for call in calls):
                self._worker.watch(WATCH_TIMEOUT)
            limit = self._timeout + self.description.contract.compile_seconds
            replies = self._worker.run(calls, limit)
        except (TargetError, Unavailable) as error:
            return [
                Reply(failure=Failure("crashed", f"the worker cannot be started again: {error}"))
            ] * len(calls)
        except _Lost as lost:
            index = self._worker.progress if self._worker is not None else 0
            self.close()
            return self._after_loss(calls, index, lost.failure)
        except BaseException:
            # Interrupted between request and reply, the line is out of step.
            self.close()
            raise
        if any(r.failure is not None and r.failure.kind == "memory" for r in replies):
            self.close()
        return replies

    def _after_loss(self, calls: Sequence[Call], index: int, failure: Failure) -> list[Reply]:
        before = self.run(calls[:index]) if index else []
        skipped = Failure(
            failure.kind, f"not run: call {index} of its batch {failure.kind} ({failure.message})"
        )
        rest = len(calls) - index - 1
        return [*before, Reply(failure=failure), *[Reply(failure=skipped)] * rest]

    def close(self) -> None:
        """End the worker. A later ``run`` would start another."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None

    def __enter__(self) -> WorkerSession:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class _Worker:
    """One worker process, the line to it, and its output. From one that is not trusted only plain
    replies are read.
    """

    def __init__(
        self, host: HostName, heavy: tuple[str, ...] = (), *, trusted: bool = True
    ) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX)
        self._log = anonymous_file()
        self._watches = False
        self.channel = Channel(ours, Arena(anonymous_file()), copy=True, trusted=trusted)
        self.channel.arena.progress = 0
        try:
            descriptors = (theirs.fileno(), self.channel.arena.descriptor, self._log)
            self._child = Child(host, heavy, descriptors)
        except BaseException:
            self.channel.close()
            os.close(self._log)
            raise
        finally:
            theirs.close()

    @property
    def progress(self) -> int:
        """Index of the call that is running, or ran last."""
        return self.channel.arena.progress

    def run(self, calls: Sequence[Call], timeout: float) -> list[Reply]:
        """Send ``calls`` and wait ``timeout`` seconds for each of them. _Lost: the worker is
        gone.
        """
        self.channel.arena.progress = 0
        try:
            self.channel.send(calls)
        except OSError:
            raise _Lost(self._death()) from None
        seen = 0
        while True:
            try:
                replies: list[Reply] = self.channel.receive(timeout)
            except TimeoutError:
                # The time is a call's, not the batch's.
                if self.progress != seen:
                    seen = self.progress
                    continue
                raise _Lost(self._hung(timeout, "answer")) from None
            except EOFError:
                raise _Lost(self._death()) from None
            except Forged as error:
                raise _Lost(Failure("crashed", str(error), trace=self._output())) from None
            return replies

    def watch(self, timeout: float) -> None:
        """Have the worker make ready to watch kernels, once, outside any call's time. _Lost: it did
        not; where it took too long, that says nothing of the backend.
        """
        if self._watches:
            return
        self.channel.arena.progress = 0
        try:
            self.channel.send(Watch())
            self.receive(timeout, "make ready to watch kernels")
        except OSError:
            raise _Lost(self._death()) from None
        except _Lost as lost:
            if lost.failure.kind != "hung":
                raise
            raise _Lost(replace(lost.failure, kind="unsupported")) from None
        self._watches = True

    def receive(self, timeout: float, task: str) -> object:
        """The next message. _Lost: the worker did not ``task`` in time, or is gone."""
        try:
            return self.channel.receive(timeout)
        except TimeoutError:
            raise _Lost(self._hung(timeout, task)) from None
        except EOFError:
            raise _Lost(self._death()) from None
        except Forged as error:
            raise _Lost(Failure("crashed", str(error), trace=self._output())) from None

    def _hung(self, timeout: float, task: str) -> Failure:
        return Failure(
            "hung", f"did not {task} within {timeout:g} s and was killed", trace=self._output()
        )

    def _death(self) -> Failure:
        status = self._child.status(_STATUS_WAIT)
        return Failure("crashed", _cause(status), trace=self._output())

    def _output(self) -> str:
        """The end of what the worker wrote to its standard output and error."""
        size = os.fstat(self._log).st_size
        tail = os.pread(self._log, _LOG_TAIL, max(0, size - _LOG_TAIL))
        return tail.decode("utf-8", "replace").strip("\0\n ")

    def close(self) -> None:
        """Hang up; the nursery kills what is left."""
        self._child.close()
        self.channel.close()
        os.close(self._log)


def _cause(status: int | None) -> str:
    if status is None:
        return "the worker process disappeared"
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        hint = "; the system may have run out of memory" if number == signal.SIGKILL else ""
        return f"the process died with {signal.Signals(number).name}{hint}"
    return f"the process exited with status {os.waitstatus_to_exitcode(status)}"
