"""cuda.softmax: our own masked softmax in CUDA C++."""

from __future__ import annotations

import torch
from torch import Tensor

from assay.impl.backends.shapes import check_softmax
from assay.impl.contract import Contract
from assay.impl.kernels.cuda_library import masked_softmax, require
from assay.impl.protocol import Unsupported, implements
from assay.impl.torch_backend import TorchBackend


class CudaSoftmax(TorchBackend):
    """A warp for each row, each lane with a running maximum over its share. Unavailable without a
    CUDA device and nvcc.
    """

    contract = Contract(
        name="cuda.softmax",
        dtypes=("float32", "bfloat16", "float16"),
        device="cuda",
        provider="own CUDA kernel",
        block_sizes=(32,),
        masks=("bool",),
        modes=("grad",),
        requires=("torch", "nvcc"),
    )

    def __init__(self) -> None:
        require()

    @implements("masked_softmax")
    def masked_softmax(self, scores: Tensor, *, mask: Tensor | None = None) -> Tensor:
        """Weights in the shape of ``scores`` [..., S]."""
        check_softmax(scores, mask)
        if mask is not None and mask.dtype is not torch.bool:
            raise Unsupported("masked_softmax", f"mask of {mask.dtype}; valid: torch.bool")
        return masked_softmax(scores, mask)
