"""The backends that come with assay."""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path


@dataclass(frozen=True)
class Builtin:
    """One built-in backend.

    name      as it is given on the command line
    location  the class as ``module:Class``
    summary   what it is, in a few words
    needs     top-level modules without which it cannot be loaded
    extra     what ``pip install 'assay[...]'`` has to name to bring them; "": assay does not bring
              them
    device    on which it runs in place of its contract's; "": on that
    heavy     modules that take seconds to import, which workers of all backends that name them
              share
    """

    name: str
    location: str
    summary: str
    needs: tuple[str, ...] = ()
    extra: str = ""
    device: str = ""
    heavy: tuple[str, ...] = ()

    @property
    def missing(self) -> tuple[str, ...]:
        """Which of the modules that it needs are not installed. Nothing is imported."""
        return tuple(module for module in self.needs if find_spec(module) is None)

    @property
    def lacks_kernels(self) -> bool:
        """Whether the torch that is installed has no kernels for a GPU, on which this runs. Its
        files tell; nothing is imported.
        """
        torch = find_spec("torch") if self.device == "cuda" else None
        folder = Path(torch.origin).parent / "lib" if torch and torch.origin else None
        if folder is None or not folder.is_dir():
            return False
        return not any((folder / f"libtorch_{kind}.so").exists() for kind in ("cuda", "hip"))

    @property
    def remedy(self) -> str:
        """The command that installs what it needs; empty where assay does not bring it."""
        return f"pip install 'assay[{self.extra}]'" if self.extra else ""


_HOME = "assay.impl.backends"
_TRACER = ("torch._dynamo", "functorch.compile")
"""What torch imports when something is compiled, dispatched or counted."""
_EXPORTER = (
    *_TRACER,
    "torch.onnx._internal.exporter._core",
    "onnxscript.function_libs.torch_lib.ops",
)
_MODELS = tuple(f"transformers.models.{name}.modeling_{name}" for name in ("llama", "gpt2"))


def _torch(name: str, place: str, summary: str, heavy: tuple[str, ...] = ()) -> Builtin:
    """A backend of ``torch_<place>``, of which torch is all that it needs."""
    place, needs = f"{_HOME}.torch_{place}", ("torch",)
    return Builtin(name, place, summary, needs=needs, extra="torch", heavy=heavy)


def _on_cuda(builtin: Builtin) -> Builtin:
    """The same class on a GPU: torch.sdpa.math becomes torch.cuda.sdpa.math."""
    name = builtin.name.replace("torch.", "torch.cuda.", 1)
    return replace(builtin, name=name, summary=f"{builtin.summary}, on a GPU", device="cuda")


def _jax(name: str, place: str, summary: str) -> Builtin:
    """A backend of ``jax_<place>``."""
    return Builtin(name, f"{_HOME}.jax_{place}", summary, needs=("jax",), extra="jax")


def _onnx(name: str, place: str, summary: str) -> Builtin:
    """A backend of ``onnx_<place>``, exported by torch."""
    needs = ("onnxscript", "onnxruntime", "torch")
    place, extra = f"{_HOME}.onnx_{place}", "torch,onnx"
    return Builtin(name, place, summary, needs=needs, extra=extra, heavy=_EXPORTER)


def _foreign(library: str, name: str, place: str, summary: str) -> Builtin:
    """A backend of ``<library>_<place>``: another library's model, on torch."""
    place, needs, extra = f"{_HOME}.{library}_{place}", (library, "torch"), "torch,foreign"
    heavy = (*_TRACER, *_MODELS) if library == "transformers" else ()
    return Builtin(name, place, summary, needs=needs, extra=extra, heavy=heavy)


def _cuda(name: str, place: str, summary: str) -> Builtin:
    """A backend of ``cuda_<place>``, whose kernels nvcc builds where they run."""
    place, needs = f"{_HOME}.cuda_{place}", ("torch",)
    return Builtin(name, place, summary, needs=needs, extra="torch", device="cuda")


def _triton(name: str, place: str, summary: str) -> Builtin:
    """A backend of ``triton_<place>``; our own kernels take torch's tensors."""
    needs, extra = ("torch", "triton"), "torch,triton"
    return Builtin(name, f"{_HOME}.triton_{place}", summary, needs=needs, extra=extra)


_BUILTIN: tuple[Builtin, ...] = (
    Builtin(
        "numpy.float32",
        f"{_HOME}.numpy_float32:NumpyFloat32",
        "both ops in float32 numpy, gradients by hand",
    ),
    _torch("torch.manual", "manual:TorchManual", "matmul, masked_fill(-inf), softmax"),
    _torch("torch.sdpa.math", "sdpa:SdpaMath", "scaled_dot_product_attention, math kernel"),
    _torch("torch.sdpa.flash", "sdpa:SdpaFlash", "scaled_dot_product_attention, flash kernel"),
    _torch(
        "torch.cache.static",
        "cache:TorchCacheStatic",
        "decoding with keys and values in preallocated slots, or in a ring",
    ),
    _torch(
        "torch.cache.growing",
        "cache:TorchCacheGrowing",
        "decoding with keys and values that are joined to those before",
    ),
    _torch(
        "torch.layers",
        "layers:TorchLayers",
        "functional linear maps, activations, norms and losses",
    ),
    _torch(
        "torch.dropout",
        "dropout:TorchDropout",
        "dropout as a function and as a module, by a given mask",
        heavy=_TRACER,
    ),
    _torch("torch.gelu", "layers:TorchGelu", "functional GELU, both forms"),
    _torch(
        "torch.layers.16bit",
        "layers:TorchSums16",
        "layer norm and embedding in bfloat16 and float16, with sums in the format of the input",
    ),
    _torch("torch.modules", "modules:TorchModules", "the same as modules"),
    _torch(
        "torch.channels_last",
        "modules:TorchChannelsLast",
        "norms of grids with channels last in memory",
    ),
    _torch(
        "torch.written",
        "written:TorchWritten",
        "norms, losses and activations in tensor operations",
    ),
    _torch(
        "torch.conv",
        "convolution:TorchConvolution",
        "convolutions and pools, as functions, as modules and with channels last",
    ),
    _torch(
        "torch.conv.16bit",
        "convolution:TorchConvolution16",
        "the same in bfloat16 and float16, with sums in the format of the input",
    ),
    _torch(
        "torch.unfold",
        "unfold:TorchUnfold",
        "convolutions and pools by unfolded windows and one product",
    ),
    _torch(
        "torch.fft",
        "spectral:TorchFft",
        "spectral convolutions by fast transforms, over the grid or axis by axis",
    ),
    _torch(
        "torch.dft", "spectral:TorchDft", "spectral convolutions by matrices of cosines and sines"
    ),
    _torch(
        "torch.models",
        "models:TorchModels",
        "every model, by torch's kernels or written out",
    ),
    _torch(
        "torch.models.streamed",
        "models_streamed:TorchModelsStreamed",
        "models over time in chunks and in steps, from caches and states that they keep",
    ),
    _torch(
        "torch.training",
        "training:TorchTraining",
        "these models trained by torch.optim: one parameter at a time, in lists and fused",
        heavy=_TRACER,
    ),
    _torch(
        "torch.audit",
        "audit:TorchAudit",
        "what torch counts, keeps, saves and draws for these models",
        heavy=_TRACER,
    ),
    _torch(
        "torch.rnn",
        "recurrent:TorchRnn",
        "nn.RNN, nn.LSTM and nn.GRU, packed, bidirectional, and their cells",
    ),
    _torch(
        "torch.rnn.loop", "recurrent:TorchRnnLoop", "recurrences in tensor operations, step by step"
    ),
    _torch(
        "torch.lstm.projected",
        "projected:TorchProjected",
        "nn.LSTM with a projection that only selects",
    ),
    _torch("torch.scan", "scan:TorchScan", "scans step by step, as a tree and as a matrix"),
    _torch("torch.mha", "mha:TorchMha", "nn.MultiheadAttention with identity projections"),
    _torch(
        "torch.flex",
        "flex:TorchFlex",
        "FlexAttention, with masks as functions of positions",
        heavy=_TRACER,
    ),
    _torch(
        "torch.flex.compiled",
        "flex_compiled:TorchFlexCompiled",
        "FlexAttention compiled by inductor, with rules of positions and without masks",
        heavy=_TRACER,
    ),
    _torch("torch.encoder_layer", "encoder:TorchEncoderLayer", "nn.TransformerEncoderLayer"),
    _torch("torch.decoder_layer", "encoder:TorchDecoderLayer", "nn.TransformerDecoderLayer"),
    _torch(
        "torch.compile",
        "compile:TorchCompile",
        "attention, softmax, layer norm, SiLU and cross entropy compiled by inductor",
        heavy=_TRACER,
    ),
    _jax("jax.attention", "attention:JaxAttention", "jax.nn.dot_product_attention"),
    _jax("jax.attention.float64", "attention:JaxAttention64", "the same in float64"),
    _jax("jax.layers", "layers:JaxLayers", "activations and softmax"),
    _jax("jax.tanh", "layers:JaxTanh", "jax.numpy.tanh and jax.nn.gelu, both forms"),
    _jax("jax.sums", "layers:JaxSums", "linear maps, and embeddings by jax.numpy.take"),
    _jax("jax.conv", "convolution:JaxConvolution", "jax.lax.conv_general_dilated"),
    _jax("jax.norm", "layers:JaxNorm", "jax.nn.standardize, by both of its algorithms"),
    _jax("jax.scan", "scan:JaxScan", "scans by associative_scan and by lax.scan"),
    _onnx("onnx.ort18", "runtime:Ort18", "torch exported at opset 18, run by ONNX Runtime"),
    _onnx("onnx.ort23", "runtime:Ort23", "the same at opset 23"),
    Builtin(
        "onnx.reference",
        f"{_HOME}.onnx_reference:OnnxReference",
        "attention by ONNX's reference evaluator",
        needs=("onnx",),
        extra="onnx",
    ),
    _triton("triton.flash", "flash:TritonFlash", "our own flash attention, forward and backward"),
    _triton("triton.softmax", "softmax:TritonSoftmax", "our own masked softmax"),
    _triton("triton.scan", "scan:TritonScan", "our own selective scan, in chunks of time"),
    _triton("triton.conv", "conv:TritonConv", "our own causal convolution"),
    _cuda("cuda.softmax", "softmax:CudaSoftmax", "our own masked softmax in CUDA C++"),
    _cuda("cuda.scan", "scan:CudaScan", "our own selective scan in CUDA C++, without gradients"),
    _foreign(
        "transformers", "transformers.gpt2", "gpt2:TransformersGpt2", "GPT-2 as the course GPT"
    ),
    _foreign(
        "transformers",
        "transformers.gpt2.cache",
        "gpt2_cache:TransformersGpt2Cache",
        "the same decoding, with DynamicCache and StaticCache",
    ),
    _foreign(
        "transformers",
        "transformers.llama",
        "llama:TransformersLlama",
        "attention as Llama calls it, fused",
    ),
    _foreign(
        "transformers",
        "transformers.llama.eager",
        "llama:TransformersLlamaEager",
        "the same with explicit scores",
    ),
    _foreign(
        "transformers", "transformers.llama.norm", "llama:TransformersLlamaNorm", "LlamaRMSNorm"
    ),
    _foreign(
        "transformers",
        "transformers.cache.dynamic",
        "cache:TransformersCacheDynamic",
        "DynamicCache, read by fused attention",
    ),
    _foreign(
        "transformers",
        "transformers.cache.static",
        "cache:TransformersCacheStatic",
        "StaticCache, or that of a sliding window, read by fused attention",
    ),
    _foreign("mambapy", "mambapy.scan", "scan:MambapyScan", "the scans of mamba.py"),
    _foreign("mambapy", "mambapy.norm", "scan:MambapyNorm", "the norm of mamba.py"),
)


BACKENDS: tuple[Builtin, ...] = (
    *_BUILTIN,
    *(_on_cuda(b) for b in _BUILTIN if b.name.startswith("torch.")),
    _on_cuda(
        _torch(
            "torch.sdpa.efficient",
            "sdpa:SdpaEfficient",
            "scaled_dot_product_attention, memory-efficient kernel",
        )
    ),
    _on_cuda(
        _torch("torch.sdpa.cudnn", "sdpa:SdpaCudnn", "scaled_dot_product_attention, cuDNN kernel")
    ),
)
