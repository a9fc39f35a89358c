"""triton.flash: our own flash attention in Triton, interpreted on the CPU."""

from __future__ import annotations

from torch import Tensor

from assay.impl.backends.shapes import check_attention
from assay.impl.contract import Contract
from assay.impl.kernels.triton_attention import BLOCK_SIZES, MOST_WIDTH, Window, attention
from assay.impl.kernels.triton_kernel import DEVICE, PATIENCE, check_format
from assay.impl.protocol import Unsupported, implements
from assay.impl.torch_backend import TorchBackend


class TritonFlash(TorchBackend):
    """Tiles of queries and keys with a running maximum; gradients from weights computed again.

    On a GPU weights are rounded to the format of the input for the tensor cores.
    """

    contract = Contract(
        name="triton.flash",
        dtypes=("float32", "bfloat16", "float16"),
        device=DEVICE,
        provider="own Triton kernel",
        intermediate=None if DEVICE == "cpu" else "input",
        exponential="exp2",
        block_sizes=BLOCK_SIZES,
        subnormals=DEVICE == "cpu",
        grouped_heads=True,
        value_width=True,
        modes=("grad",),
        compile_seconds=PATIENCE,
        requires=("torch", "triton"),
    )

    @implements("attention")
    def attention(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        *,
        mask: Tensor | None = None,
        causal: bool = False,
        offset: int = 0,
        window: Window | None = None,
        scale: float | None = None,
    ) -> Tensor:
        """Output [B, H, L, Dv]."""
        check_attention(q, k, v, mask)
        check_format("attention", q, k, v)
        if max(q.shape[3], v.shape[3]) > MOST_WIDTH:
            raise Unsupported("attention", f"width {max(q.shape[3], v.shape[3])}; at most 256")
        return attention(
            q, k, v, mask=mask, causal=causal, offset=offset, window=window, scale=scale
        )
