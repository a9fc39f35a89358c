"""Memory of this process and all that descend from it, read from /proc (Linux)."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from assay.zoo.cpu import descendants


def peak_bytes(pid: int) -> int:
    """Highest resident memory so far."""
    return _status(pid, "VmHWM") or resident_bytes(pid)


def resident_bytes(pid: int | None = None) -> int:
    """Resident memory now."""
    return _status(pid or os.getpid(), "VmRSS")


def _status(pid: int, name: str) -> int:
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


@dataclass
class Watch:
    """Looks at the descendants ten times a second. ``peaks``: highest resident memory by process
    id.
    """

    peaks: dict[int, int] = field(default_factory=dict)
    most_together: int = 0

    def __enter__(self) -> Watch:
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._over.wait(0.1):
            now = {pid: resident_bytes(pid) for pid in descendants()}
            self.most_together = max(self.most_together, sum(now.values()))
            for pid, size in now.items():
                self.peaks[pid] = max(self.peaks.get(pid, 0), size, peak_bytes(pid))
