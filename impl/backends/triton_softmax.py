"""triton.softmax: our own masked softmax in Triton, interpreted on the CPU."""

from __future__ import annotations

import torch
from torch import Tensor

from assay.impl.backends.shapes import check_softmax
from assay.impl.contract import Contract
from assay.impl.kernels.triton_kernel import DEVICE, PATIENCE, check_format
from assay.impl.kernels.triton_softmax import TILE, masked_softmax
from assay.impl.protocol import Unsupported, implements
from assay.impl.torch_backend import TorchBackend


class TritonSoftmax(TorchBackend):
    """Rows that fit in a tile in one pass, longer ones in two, with a running maximum."""

    contract = Contract(
        name="triton.softmax",
        dtypes=("float32", "bfloat16", "float16"),
        device=DEVICE,
        provider="own Triton kernel",
        exponential="exp2",
        block_sizes=(TILE,),
        subnormals=DEVICE == "cpu",
        masks=("bool",),
        modes=("grad",),
        compile_seconds=PATIENCE,
        requires=("torch", "triton"),
    )

    @implements("masked_softmax")
    def masked_softmax(self, scores: Tensor, *, mask: Tensor | None = None) -> Tensor:
        """Weights in the shape of ``scores`` [..., S]."""
        check_softmax(scores, mask)
        check_format("masked_softmax", scores)
        if mask is not None and mask.dtype is not torch.bool:
            raise Unsupported("masked_softmax", f"mask of {mask.dtype}; valid: torch.bool")
        return masked_softmax(scores, mask)
