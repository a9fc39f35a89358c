"""CPU time of this process and of all that descend from it, read from /proc where there is one."""

from __future__ import annotations

import os
import time
from pathlib import Path

_PROC = Path("/proc")


def descendants(root: int | None = None) -> dict[int, str]:
    """Process id to command line of ``root`` (this process) and everything below it."""
    return {pid: _command(pid) for pid in _below(root or os.getpid())}


def cpu_seconds() -> float:
    """User and system time of this process, of its living descendants, and of their children that
    ended.

    Where there is no /proc, this process and its children that ended.
    """
    ended = os.times()
    others = _below(os.getpid()) - {os.getpid()} if _PROC.is_dir() else set()
    ticks = sum(_ticks(pid) for pid in others)
    seconds = ticks / os.sysconf("SC_CLK_TCK") if ticks else 0.0
    return time.process_time() + ended.children_user + ended.children_system + seconds


def _below(root: int) -> set[int]:
    parents: dict[int, int] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            parents[int(entry.name)] = int(fields[1])
    found = {root}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def _stat(pid: int) -> list[str]:
    """Fields of /proc/PID/stat from the state on; empty when it has ended."""
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _ticks(pid: int) -> int:
    """Clock ticks of a process and of its children that ended."""
    return sum(int(x) for x in _stat(pid)[11:15])


def _command(pid: int) -> str:
    try:
        return (_PROC / str(pid) / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""
