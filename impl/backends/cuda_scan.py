"""cuda.scan: our own selective scan in CUDA C++."""

from __future__ import annotations

from torch import Tensor

from assay.impl.backends.shapes import check_selective_scan
from assay.impl.contract import Contract
from assay.impl.kernels.cuda_library import MOST_STATES, require, selective_scan
from assay.impl.protocol import Unsupported, implements
from assay.impl.torch_backend import TorchBackend


class CudaScan(TorchBackend):
    """A thread for each channel, its states in registers. Unavailable without a CUDA device and
    nvcc.
    """

    contract = Contract(
        name="cuda.scan",
        dtypes=("float32", "bfloat16", "float16"),
        device="cuda",
        provider="own CUDA kernel",
        gradients=False,
        modes=("no_grad",),
        requires=("torch", "nvcc"),
    )

    def __init__(self) -> None:
        require()

    @implements("selective_scan")
    def selective_scan(
        self,
        u: Tensor,
        delta: Tensor,
        a: Tensor,
        b: Tensor,
        c: Tensor,
        *,
        d: Tensor | None = None,
        h0: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Outputs [B, T, E] and the last state [B, E, Ns]."""
        check_selective_scan(u, delta, a, b, c, d, h0)
        if a.shape[1] > MOST_STATES:
            raise Unsupported("selective_scan", f"{a.shape[1]} states; at most {MOST_STATES}")
        return selective_scan(u, delta, a, b, c, d, h0)
