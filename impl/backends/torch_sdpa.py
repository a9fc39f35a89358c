"""torch.sdpa.*: ``scaled_dot_product_attention`` held to one of its kernels."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from assay.impl.backends.shapes import check_attention
from assay.impl.backends.torch_masks import Window, merge, position_mask
from assay.impl.contract import Contract
from assay.impl.protocol import Unsupported, implements
from assay.impl.torch_backend import TorchBackend

_DTYPES = ("float32", "bfloat16", "float16", "float64")


class _Sdpa(TorchBackend):
    """Offsets and windows become masks; ``is_causal``, a top-left triangle, is used where it alone
    says it all.
    """

    kernel: ClassVar[SDPBackend]

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
        flag = causal and mask is None and offset == 0 and window is None
        seen = position_mask(
            q.shape[2],
            k.shape[2],
            causal=causal and not flag,
            offset=offset,
            window=window,
            device=q.device,
        )
        grouped = q.shape[1] != k.shape[1]
        with sdpa_kernel(self.kernel):
            try:
                return scaled_dot_product_attention(
                    q, k, v, merge(mask, seen), is_causal=flag, scale=scale, enable_gqa=grouped
                )
            except RuntimeError as error:
                if "No available kernel" in str(error):
                    raise Unsupported(
                        "attention", f"{self.contract.name} refuses this call: {error}"
                    ) from error
                raise


class SdpaMath(_Sdpa):
    """The composite kernel: batched matmuls and a softmax that gives 0 on an empty row."""

    kernel = SDPBackend.MATH
    contract = Contract(
        name="torch.sdpa.math",
        dtypes=_DTYPES,
        provider="ATen",
        empty_row="zeros",
        blocked_nonfinite="isolates",
        grouped_heads=True,
        value_width=True,
        witness=("aten::_scaled_dot_product_attention_math",),
        requires=("torch",),
    )


class SdpaFlash(_Sdpa):
    """The tiled kernel: queries in blocks of 32, 64 or 256, keys in blocks of 512.

    Its vectorised exponential gives 0 where the result is subnormal.
    """

    kernel = SDPBackend.FLASH_ATTENTION
    contract = Contract(
        name="torch.sdpa.flash",
        dtypes=_DTYPES,
        provider="ATen",
        intermediate="input",
        block_sizes=(32, 64, 256, 512),
        subnormals=False,
        empty_row="zeros",
        blocked_nonfinite="isolates",
        grouped_heads=True,
        value_width=False,
        witness=(
            "aten::_scaled_dot_product_flash_attention_for_cpu",
            "aten::_scaled_dot_product_flash_attention",
        ),
        requires=("torch",),
    )


class SdpaEfficient(_Sdpa):
    """The memory-efficient kernel, which CUDA alone has."""

    kernel = SDPBackend.EFFICIENT_ATTENTION
    contract = Contract(
        name="torch.sdpa.efficient",
        dtypes=("float32", "bfloat16", "float16"),
        device="cuda",
        provider="CUTLASS",
        intermediate="input",
        block_sizes=(32, 64, 128),
        subnormals=False,
        witness=("aten::_scaled_dot_product_efficient_attention",),
        requires=("torch",),
    )


class SdpaCudnn(_Sdpa):
    """cuDNN's kernel, for 16-bit formats."""

    kernel = SDPBackend.CUDNN_ATTENTION
    contract = Contract(
        name="torch.sdpa.cudnn",
        dtypes=("bfloat16", "float16"),
        device="cuda",
        provider="cuDNN",
        intermediate="input",
        block_sizes=(64, 128),
        subnormals=False,
        witness=("aten::_scaled_dot_product_cudnn_attention",),
        requires=("torch",),
    )
