"""A session runs calls of one backend: in this process, or in a worker that may crash, hang and run
out of memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

from assay.impl.call import Call, Reply
from assay.impl.description import Description as Description
from assay.impl.description import describe
from assay.impl.loading import Target, check_backend
from assay.impl.protocol import Backend
from assay.impl.runner import execute

if TYPE_CHECKING:
    from assay.impl.adversarial_session import Adversary


class Session(Protocol):
    """Runs calls. Use it as a context manager, or close it."""

    @property
    def description(self) -> Description:
        """What the backend declares and accepts."""
        ...

    def run(self, calls: Sequence[Call]) -> list[Reply]:
        """One reply for each call, in order; a backend's faults are failures in them."""
        ...

    def close(self) -> None:
        """Release the worker, if there is one. Closing twice is harmless."""
        ...

    def __enter__(self) -> Session: ...

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...


class LocalSession:
    """Calls run in this process: fastest, and a crash takes everything along."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.description = describe(backend)

    def run(self, calls: Sequence[Call]) -> list[Reply]:
        """Run ``calls`` here."""
        return execute(self.backend, calls)

    def close(self) -> None:
        """Nothing is held."""

    def __enter__(self) -> LocalSession:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open_session(
    target: Target | Backend,
    *,
    isolate: bool = True,
    timeout: float = 10.0,
    memory: int | None = None,
    adversary: Adversary | None = None,
) -> Session:
    """Load ``target`` and be ready to run its calls. TargetError: it cannot be loaded; Unavailable:
    it cannot run on this machine.

    isolate    in a worker process; ``timeout`` in seconds a call and ``memory`` in bytes of address
               space apply to it
    memory     None: what is mapped once it is loaded and 2 GiB; 0: no limit
    adversary  how it is kept in the dark, since it may try to look right; it needs a worker
    """
    if timeout <= 0 or (memory is not None and memory < 0):
        raise ValueError(
            f"timeout={timeout!r} must be positive and memory={memory!r} None or at least 0"
        )
    if adversary is not None and not isolate:
        raise ValueError("isolate=False leaves an adversary in this process; valid: isolate=True")
    if isinstance(target, Target):
        target.check_needs()
    if adversary is not None:
        from assay.impl.adversarial_session import AdversarialSession

        return AdversarialSession(target, adversary, timeout=timeout, memory=memory)
    if isolate:
        from assay.impl.worker_session import WorkerSession

        return WorkerSession(target, timeout=timeout, memory=memory)
    backend = target.load() if isinstance(target, Target) else target
    check_backend(backend, type(backend).__name__)
    return LocalSession(backend)
