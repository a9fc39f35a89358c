"""Every Triton kernel compiles for sm_90 on a machine without a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from assay.impl.kernels.triton_ahead import RUNS, compiled, launches_of  # noqa: E402
from assay.impl.kernels.triton_kernel import Kernel, Launch  # noqa: E402
from tests.impl.triton_fakes import ragged, rogue  # noqa: E402

KERNELS = {
    "flash_forward", "flash_backward_queries", "flash_backward_keys", "softmax_forward",
    "softmax_backward", "scan_forward", "scan_backward", "conv_forward", "conv_backward_inputs",
    "conv_backward_weight",
}  # fmt: skip
CASES = [(name, dtype) for name, (_, dtypes) in RUNS.items() for dtype in dtypes]


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize(("name", "dtype"), CASES, ids=lambda x: str(x).removeprefix("torch."))
def test_every_launch_compiles_for_hopper(name: str, dtype: Any) -> None:
    launches = launches_of(RUNS[name][0], dtype)
    assert launches
    for launch in launches:
        built = compiled(launch)
        assert ".target sm_90" in built.ptx
        assert f".entry {launch.kernel.__name__}(" in built.ptx


def test_every_kernel_is_among_the_launches_in_every_format() -> None:
    for dtype in RUNS["softmax"][1]:
        runs = [run for run, dtypes in RUNS.values() if dtype in dtypes]
        names = {launch.kernel.__name__ for run in runs for launch in launches_of(run, dtype)}
        assert names == KERNELS
    assert Kernel.told is None


def test_what_the_interpreter_accepts_and_the_compiler_does_not_fails() -> None:
    x = torch.zeros(4)
    rogue[(1,)](x, SIZE=4)
    assert x.tolist() == [1.0] * 4
    from triton.compiler.errors import CompilationError

    with pytest.raises(CompilationError):
        compiled(Launch(rogue, (x,), {"SIZE": 4}))
    assert ".target sm_90" in compiled(Launch(ragged, (x,), {"SIZE": 4})).ptx
