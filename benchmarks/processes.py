"""CPU time and memory of this process and all that descend from it, read from /proc (Linux)."""

from __future__ import annotations

import os
import threading
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

_TICK = os.sysconf("SC_CLK_TCK")


def descendants(root: int | None = None) -> dict[int, str]:
    """Process id to command line of ``root`` (this process) and everything below it."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            parents[int(entry.name)] = int(fields[1])
    found = {root or os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return {pid: _command(pid) for pid in found}


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the state on; empty when it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def cpu_seconds() -> float:
    """User and system time of this process and its living descendants, and of their children that
    ended.
    """
    ticks = 0
    for pid in descendants():
        fields = _stat(pid)
        ticks += sum(int(x) for x in fields[11:15]) if fields else 0
    return ticks / _TICK


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
