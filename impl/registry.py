"""The backends that come with assay."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Builtin:
    """One built-in backend: its name, the class as ``module:Class``, and what it is in a few
    words.
    """

    name: str
    location: str
    summary: str


_HOME = "assay.impl.backends"

BACKENDS: tuple[Builtin, ...] = (
    Builtin(
        "numpy.float32",
        f"{_HOME}.numpy_float32:NumpyFloat32",
        "both ops in float32 numpy, gradients by hand",
    ),
    Builtin(
        "torch.manual", f"{_HOME}.torch_manual:TorchManual", "matmul, masked_fill(-inf), softmax"
    ),
    Builtin(
        "torch.sdpa.math",
        f"{_HOME}.torch_sdpa:SdpaMath",
        "scaled_dot_product_attention, math kernel",
    ),
    Builtin(
        "torch.sdpa.flash",
        f"{_HOME}.torch_sdpa:SdpaFlash",
        "scaled_dot_product_attention, flash kernel",
    ),
    Builtin(
        "torch.layers",
        f"{_HOME}.torch_layers:TorchLayers",
        "functional linear maps, activations, norms and losses",
    ),
    Builtin(
        "torch.mha",
        f"{_HOME}.torch_mha:TorchMha",
        "nn.MultiheadAttention with identity projections",
    ),
)
