"""triton.conv: our own causal convolution in Triton, interpreted on the CPU."""

from __future__ import annotations

from torch import Tensor

from assay.impl.backends.shapes import check_causal_conv1d
from assay.impl.contract import Contract
from assay.impl.kernels.triton_conv import STEPS, causal_conv1d
from assay.impl.kernels.triton_kernel import DEVICE, PATIENCE, check_format
from assay.impl.protocol import implements
from assay.impl.torch_backend import TorchBackend


class TritonConv(TorchBackend):
    """Tiles of steps and channels; the sum over taps in registers."""

    contract = Contract(
        name="triton.conv",
        dtypes=("float32", "bfloat16", "float16"),
        device=DEVICE,
        provider="own Triton kernel",
        block_sizes=(STEPS,),
        modes=("grad",),
        compile_seconds=PATIENCE,
        requires=("torch", "triton"),
    )

    @implements("causal_conv1d")
    def causal_conv1d(
        self,
        x: Tensor,
        weight: Tensor,
        *,
        bias: Tensor | None = None,
        history: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Outputs [B, T, E] and the inputs that later taps still see."""
        check_causal_conv1d(x, weight, bias, history)
        check_format("causal_conv1d", x, weight)
        return causal_conv1d(x, weight, bias, history)
