"""triton.scan: our own selective scan in Triton, interpreted on the CPU."""

from __future__ import annotations

from torch import Tensor

from assay.impl.backends.shapes import check_selective_scan
from assay.impl.contract import Contract
from assay.impl.kernels.triton_kernel import DEVICE, PATIENCE, check_format
from assay.impl.kernels.triton_scan import CHUNK, selective_scan
from assay.impl.protocol import implements
from assay.impl.torch_backend import TorchBackend


class TritonScan(TorchBackend):
    """Step by step, states in registers; gradients chunk by chunk from saved states."""

    contract = Contract(
        name="triton.scan",
        dtypes=("float32", "bfloat16", "float16"),
        device=DEVICE,
        provider="own Triton kernel",
        exponential="exp2",
        block_sizes=(CHUNK,),
        subnormals=DEVICE == "cpu",
        modes=("grad",),
        compile_seconds=PATIENCE,
        requires=("torch", "triton"),
    )

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
        check_format("selective_scan", u, delta, a, b, c)
        return selective_scan(u, delta, a, b, c, d, h0)
