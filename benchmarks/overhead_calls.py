"""What a call costs beyond the kernel, in this process and in a worker, and what a worker costs.

Run with ``python -m benchmarks.overhead_calls``. Times are medians, in microseconds unless said.
"""

from __future__ import annotations

import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from assay.impl.call import Call
from assay.impl.loading import Target, resolve
from assay.impl.nursery import ensure
from assay.impl.session import Session, open_session

TARGETS = ("numpy.float32", "torch.sdpa.math", "torch.sdpa.flash")
SHAPE = (1, 2, 16, 16)
_ABORTS = """
import os
from assay.impl import Contract, NumpyBackend, implements
class Aborts(NumpyBackend):
    contract = Contract(name="aborts")
    @implements("attention")
    def attention(self, q, k, v, *, scale=None):
        if scale == 2:
            os.abort()
        return v.copy()
"""


def median(action: Callable[[], object], rounds: int = 1000) -> float:
    """Median time of ``action`` in microseconds, after a tenth of the rounds to warm up."""
    times = []
    for turn in range(rounds + rounds // 10):
        began = time.perf_counter()
        action()
        if turn >= rounds // 10:
            times.append(time.perf_counter() - began)
    return statistics.median(times) * 1e6


def attention_call(mode: str, gradients: bool) -> Call:
    """One call of attention on SHAPE."""
    rng = np.random.default_rng(0)
    draw = [rng.standard_normal(SHAPE).astype(np.float32) for _ in range(4)]
    inputs = dict(zip("qkv", draw[:3], strict=True))
    return Call("attention", inputs, cotangents={"out": draw[3]} if gradients else None, mode=mode)


def bare(target: Target, mode: str) -> float:
    """The adapter's own method on arrays of its host."""
    backend = target.load()
    backend.mode = mode
    call = attention_call(mode, False)
    host = backend.host()
    q, k, v = host.wrap(np.zeros(64, np.uint8), call.inputs, False).values()
    method = backend.operations()["attention"].method
    with host.context():
        return median(lambda: method(q, k, v))


def calls_table() -> None:
    """Bare kernel, in-process call, isolated call, and the latter two with gradients."""
    print(f"attention {SHAPE}, float32, forward (with gradients), microseconds a call")
    print(f"{'backend':<18}{'bare':>8}{'in process':>20}{'overhead':>10}{'isolated':>20}")
    for name in TARGETS:
        target = resolve(name)
        with open_session(target, isolate=False) as here, open_session(target) as there:
            mode = here.description.contract.modes[0]
            graded = here.description.gradient_modes[0]
            kernel = bare(target, mode)
            cells = [_pair(session, mode, graded) for session in (here, there)]
        local = f"{cells[0][0]:.0f} ({cells[0][1]:.0f})"
        away = f"{cells[1][0]:.0f} ({cells[1][1]:.0f})"
        print(f"{name:<18}{kernel:>8.0f}{local:>20}{cells[0][0] - kernel:>10.0f}{away:>20}")


def _pair(session: Session, mode: str, graded: str) -> tuple[float, float]:
    plain, full = [attention_call(mode, False)], [attention_call(graded, True)]
    return median(lambda: session.run(plain)), median(lambda: session.run(full))


def starts(folder: Path) -> None:
    """Start of a nursery, of a session, and of the worker that replaces a crashed one."""
    for host in ("numpy", "torch"):
        began = time.perf_counter()
        ensure("torch" if host == "torch" else "numpy")
        print(f"start of the {host} nursery, once a campaign: {time.perf_counter() - began:.2f} s")
    for name in TARGETS[:2]:
        target = resolve(name)
        cost = median(lambda target=target: open_session(target).close(), 20)  # type: ignore[misc]
        print(f"open and close a session of {name}: {cost / 1e3:.0f} ms")
    path = folder / "aborts.py"
    path.write_text(_ABORTS)
    call = attention_call("default", False)
    fatal = Call("attention", call.inputs, {"scale": 2})
    with open_session(resolve(f"{path}:Aborts")) as session:
        cost = median(lambda: (session.run([fatal]), session.run([call])), 20)
    print(f"crash, restart and next call: {cost / 1e3:.0f} ms")


def main() -> None:
    """Print everything, with the machine and versions."""
    import tempfile

    import torch

    torch.set_num_threads(1)
    print(f"{platform.platform()}, Python {platform.python_version()}, numpy {np.__version__}, "
          f"torch {torch.__version__}, one thread")  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        starts(Path(folder))
    calls_table()


if __name__ == "__main__":
    main()
