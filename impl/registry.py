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
        "torch.cache.static",
        f"{_HOME}.torch_cache:TorchCacheStatic",
        "decoding with keys and values in preallocated slots, or in a ring",
    ),
    Builtin(
        "torch.cache.growing",
        f"{_HOME}.torch_cache:TorchCacheGrowing",
        "decoding with keys and values that are joined to those before",
    ),
    Builtin(
        "torch.layers",
        f"{_HOME}.torch_layers:TorchLayers",
        "functional linear maps, activations, norms and losses",
    ),
    Builtin(
        "torch.dropout",
        f"{_HOME}.torch_dropout:TorchDropout",
        "dropout as a function and as a module, by a given mask",
    ),
    Builtin("torch.gelu", f"{_HOME}.torch_layers:TorchGelu", "functional GELU, both forms"),
    Builtin(
        "torch.layers.16bit",
        f"{_HOME}.torch_layers:TorchSums16",
        "layer norm and embedding in bfloat16 and float16, with sums in the format of the input",
    ),
    Builtin(
        "torch.modules",
        f"{_HOME}.torch_modules:TorchModules",
        "the same as modules",
    ),
    Builtin(
        "torch.channels_last",
        f"{_HOME}.torch_modules:TorchChannelsLast",
        "norms of grids with channels last in memory",
    ),
    Builtin(
        "torch.written",
        f"{_HOME}.torch_written:TorchWritten",
        "norms, losses and activations in tensor operations",
    ),
    Builtin(
        "torch.conv",
        f"{_HOME}.torch_convolution:TorchConvolution",
        "convolutions and pools, as functions, as modules and with channels last",
    ),
    Builtin(
        "torch.conv.16bit",
        f"{_HOME}.torch_convolution:TorchConvolution16",
        "the same in bfloat16 and float16, with sums in the format of the input",
    ),
    Builtin(
        "torch.unfold",
        f"{_HOME}.torch_unfold:TorchUnfold",
        "convolutions and pools by unfolded windows and one product",
    ),
    Builtin(
        "torch.fft",
        f"{_HOME}.torch_spectral:TorchFft",
        "spectral convolutions by fast transforms, over the grid or axis by axis",
    ),
    Builtin(
        "torch.dft",
        f"{_HOME}.torch_spectral:TorchDft",
        "spectral convolutions by matrices of cosines and sines",
    ),
    Builtin(
        "torch.models",
        f"{_HOME}.torch_models:TorchModels",
        "an MLP, a residual network, recurrent models and a GPT, its attention fused or explicit",
    ),
    Builtin(
        "torch.rnn",
        f"{_HOME}.torch_recurrent:TorchRnn",
        "nn.RNN, nn.LSTM and nn.GRU, packed, bidirectional, and their cells",
    ),
    Builtin(
        "torch.rnn.loop",
        f"{_HOME}.torch_recurrent:TorchRnnLoop",
        "recurrences in tensor operations, step by step",
    ),
    Builtin(
        "torch.scan",
        f"{_HOME}.torch_scan:TorchScan",
        "scans step by step, as a tree and as a matrix",
    ),
    Builtin(
        "torch.mha",
        f"{_HOME}.torch_mha:TorchMha",
        "nn.MultiheadAttention with identity projections",
    ),
)
