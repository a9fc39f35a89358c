"""onnx.ort18 and onnx.ort23: torch's functions, exported to ONNX and run by ONNX Runtime."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import onnxruntime
import torch
from torch.nn import functional

from assay.impl.backends.onnx_export import Function, session_of
from assay.impl.backends.position_masks import Window, merge, position_mask
from assay.impl.backends.shapes import check_attention, check_softmax
from assay.impl.contract import Contract
from assay.impl.numpy_backend import NumpyBackend
from assay.impl.protocol import Unsupported, implements

_SCALES = (None, 0.5, -1.0)
_SMOOTHINGS = (0.0, 0.5, 1.0)


class _Exported(NumpyBackend):
    """An export takes about a second and fixes all but lengths, so each op is exported for a few
    kinds of call: for attributes not listed, adapters take no keyword or say "unsupported". What
    works on single numbers or on rows is exported for one number of axes, which others become.
    """

    opset: ClassVar[int]

    def __init__(self) -> None:
        self._sessions: dict[Any, onnxruntime.InferenceSession] = {}
        # The first export imports the exporter, for which a call has no time.
        self._session("relu", torch.relu, {"x": "a"}, {"x": np.dtype(np.float32)})

    def _session(
        self,
        key: Any,
        function: Function,
        axes: dict[str, str],
        dtypes: dict[str, np.dtype[Any]],
    ) -> onnxruntime.InferenceSession:
        kind = (key, *axes.items(), *dtypes.values())
        if kind not in self._sessions:
            self._sessions[kind] = session_of(function, axes, dtypes, self.opset)
        return self._sessions[kind]

    def run(
        self,
        key: Any,
        function: Function,
        axes: dict[str, str],
        **arrays: np.ndarray,
    ) -> np.ndarray:
        """``function`` of ``arrays``; ``key`` tells it from others."""
        session = self._session(key, function, axes, {n: x.dtype for n, x in arrays.items()})
        packed = {n: np.ascontiguousarray(x) for n, x in arrays.items()}
        (out,) = session.run(None, packed)
        return np.asarray(out)

    def pointwise(self, key: Any, function: Function, x: np.ndarray) -> np.ndarray:
        """A function of single numbers: any shape is one long axis."""
        return self.run(key, function, {"x": "a"}, x=x.reshape(-1)).reshape(x.shape)

    def by_row(self, key: Any, function: Function, **arrays: np.ndarray) -> np.ndarray:
        """A function of the last axis: all others are one. Arrays of one axis go to every row."""
        shape = next(iter(arrays.values())).shape
        axes = {n: "ab" if x.ndim == len(shape) else "b" for n, x in arrays.items()}
        folded = (math.prod(shape[:-1]), shape[-1])
        flat = {n: x.reshape(folded) if axes[n] == "ab" else x for n, x in arrays.items()}
        return self.run(key, function, axes, **flat).reshape(shape)

    @implements("attention")
    def attention(
        self,
        q: np.ndarray,
        k: np.ndarray,
        v: np.ndarray,
        *,
        mask: np.ndarray | None = None,
        causal: bool = False,
        offset: int = 0,
        window: Window | None = None,
        scale: float | None = None,
    ) -> np.ndarray:
        """``scaled_dot_product_attention``; offsets and windows become masks."""
        check_attention(q, k, v, mask)
        flag = causal and mask is None and offset == 0 and window is None
        lengths = (q.shape[2], k.shape[2])
        seen = position_mask(*lengths, causal=causal and not flag, offset=offset, window=window)
        self._check(q, k, mask, scale)
        grouped = k.shape[1] != q.shape[1]
        attend = _attend_grouped(flag, scale) if grouped else _attend(flag, scale)
        heads, given = "g" if grouped else "h", merge(mask, seen)
        axes = {"q": "bhld", "k": f"b{heads}sd", "v": f"b{heads}se"}
        if given is None:
            key = ("attention", flag, scale)
            return self.run(key, attend, axes, q=q, k=k, v=v)
        if scale is not None:
            raise Unsupported("attention", "a scale is exported without a mask alone")
        full = np.broadcast_to(given, (*q.shape[:2], *lengths))
        key, axes = ("masked attention", flag, None), {**axes, "mask": "bhls"}
        return self.run(key, attend, axes, q=q, k=k, v=v, mask=full)

    def _check(
        self, q: np.ndarray, k: np.ndarray, mask: np.ndarray | None, scale: float | None
    ) -> None:
        if scale not in _SCALES:
            raise Unsupported("attention", f"exported for scales {_SCALES} alone")
        if not (q.size and k.size):
            raise Unsupported("attention", "ONNX Runtime refuses attention of empty arrays")

    @implements("masked_softmax")
    def masked_softmax(self, scores: np.ndarray, *, mask: np.ndarray | None = None) -> np.ndarray:
        """``softmax`` between two ``masked_fill``."""
        check_softmax(scores, mask)
        if mask is None:
            return self.by_row("softmax", lambda x: torch.softmax(x, -1), scores=scores)
        if mask.dtype != bool:
            raise Unsupported("masked_softmax", "exported for boolean masks alone")
        full = np.broadcast_to(mask, scores.shape)
        return self.by_row("masked_softmax", _masked_softmax, scores=scores, mask=full)

    @implements("gelu")
    def gelu(self, x: np.ndarray, *, approximate: str = "none") -> np.ndarray:
        """``functional.gelu``, both forms."""

        def gelu(x: torch.Tensor) -> torch.Tensor:
            return functional.gelu(x, approximate=approximate)

        return self.pointwise(("gelu", approximate), gelu, x)

    @implements("layer_norm")
    def layer_norm(
        self, x: np.ndarray, *, weight: np.ndarray | None = None, bias: np.ndarray | None = None
    ) -> np.ndarray:
        """``functional.layer_norm`` over the last axis, with both parameters or none."""
        given = {n: p for n, p in (("weight", weight), ("bias", bias)) if p is not None}
        if len(given) == 1:
            raise Unsupported("layer_norm", "exported with both parameters or none")
        _check_parameters(x.shape[-1:], given)

        def norm(
            x: torch.Tensor, weight: torch.Tensor | None = None, bias: torch.Tensor | None = None
        ) -> torch.Tensor:
            return functional.layer_norm(x, x.shape[-1:], weight, bias)

        return self.by_row("layer_norm", norm, x=x, **given)


class Ort18(_Exported):
    """Opset 18, in which attention and GELU are written with smaller operations, for as many heads
    of keys as of queries.
    """

    opset = 18
    contract = Contract(
        name="onnx.ort18",
        dtypes=("float32",),
        provider="ONNX Runtime",
        value_width=True,
        causal_alignment="offset",
        # Measured: its exponential is 0 below -88.4.
        subnormals=False,
        gradients=False,
        compile_seconds=30.0,
        requires=("onnx", "onnxscript", "onnxruntime", "torch"),
    )

    def _check(
        self, q: np.ndarray, k: np.ndarray, mask: np.ndarray | None, scale: float | None
    ) -> None:
        if q.shape[1] != k.shape[1]:
            raise Unsupported("attention", "the exporter refuses enable_gqa where heads stay open")
        super()._check(q, k, mask, scale)

    @implements("silu")
    def silu(self, x: np.ndarray) -> np.ndarray:
        """``functional.silu``."""
        return self.pointwise("silu", functional.silu, x)

    @implements("sigmoid")
    def sigmoid(self, x: np.ndarray) -> np.ndarray:
        """``torch.sigmoid``."""
        return self.pointwise("sigmoid", torch.sigmoid, x)

    @implements("tanh")
    def tanh(self, x: np.ndarray) -> np.ndarray:
        """``torch.tanh``."""
        return self.pointwise("tanh", torch.tanh, x)

    @implements("softplus")
    def softplus(self, x: np.ndarray) -> np.ndarray:
        """``functional.softplus``."""
        return self.pointwise("softplus", functional.softplus, x)

    @implements("log_softmax")
    def log_softmax(self, x: np.ndarray) -> np.ndarray:
        """``torch.log_softmax`` over the last axis."""
        return self.by_row("log_softmax", lambda x: torch.log_softmax(x, -1), x=x)

    @implements("linear")
    def linear(
        self, x: np.ndarray, weight: np.ndarray, *, bias: np.ndarray | None = None
    ) -> np.ndarray:
        """``functional.linear``, of a matrix or of a batch of them: ONNX multiplies them apart."""
        rows, (outputs, _) = x.shape[:-1], weight.shape
        folded = x.reshape(*rows[:1], math.prod(rows[1:]), x.shape[-1]) if x.ndim > 2 else x
        axes = {"x": "abi" if x.ndim > 2 else "bi", "weight": "oi"}
        given = {} if bias is None else {"bias": bias}
        axes |= dict.fromkeys(given, "o")
        flat = folded if x.ndim > 1 else x[None]
        out = self.run("linear", functional.linear, axes, x=flat, weight=weight, **given)
        return out.reshape(*rows, outputs)

    @implements("embedding")
    def embedding(self, ids: np.ndarray, table: np.ndarray) -> np.ndarray:
        """``functional.embedding``."""
        axes = {"ids": "a", "table": "yz"}
        rows = self.run("embedding", functional.embedding, axes, ids=ids.reshape(-1), table=table)
        return rows.reshape(*ids.shape, table.shape[1])

    @implements("convolution")
    def convolution(
        self, x: np.ndarray, weight: np.ndarray, *, bias: np.ndarray | None = None
    ) -> np.ndarray:
        """``functional.conv1d`` and ``conv2d``, with their defaults."""
        axes = x.ndim - 2
        if axes not in (1, 2):
            raise Unsupported("convolution", f"exported for 1 or 2 axes, x has {axes}")
        if any(n < k for n, k in zip(x.shape[2:], weight.shape[2:], strict=True)):
            raise Unsupported("convolution", "ONNX Runtime refuses kernels larger than the input")
        function: Any = functional.conv1d if axes == 1 else functional.conv2d
        letters = {"x": "bcmn"[: x.ndim], "weight": "ocij"[: x.ndim]}
        key, given = ("convolution", axes), {} if bias is None else {"bias": bias}
        letters |= dict.fromkeys(given, "o")
        return self.run(key, function, letters, x=x, weight=weight, **given)

    @implements("cross_entropy")
    def cross_entropy(
        self,
        logits: np.ndarray,
        targets: np.ndarray,
        *,
        label_smoothing: float = 0.0,
        reduction: str = "mean",
    ) -> np.ndarray:
        """``functional.cross_entropy``."""
        if not logits.size:
            raise Unsupported("cross_entropy", "ONNX Runtime refuses losses of no rows")
        if label_smoothing not in _SMOOTHINGS:
            raise Unsupported("cross_entropy", f"exported for smoothings {_SMOOTHINGS} alone")

        def loss(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
            return functional.cross_entropy(
                logits, targets, label_smoothing=label_smoothing, reduction=reduction
            )

        axes = {"logits": "nv", "targets": "n"}
        key = ("cross_entropy", label_smoothing, reduction)
        return self.run(key, loss, axes, logits=logits, targets=targets)


class Ort23(_Exported):
    """Opset 23, in which attention, GELU and RMS norm are operators of their own.

    The operator's description gives a row that sees no key zeros. It takes fewer heads of keys than
    of queries; torch's exporter compares their numbers, so that they could not stay open, and the
    operator is called by its name.
    """

    opset = 23
    contract = replace(Ort18.contract, name="onnx.ort23", grouped_heads=True)

    def _check(
        self, q: np.ndarray, k: np.ndarray, mask: np.ndarray | None, scale: float | None
    ) -> None:
        super()._check(q, k, mask, scale)
        if scale is not None and scale <= 0:
            raise Unsupported("attention", "ONNX Runtime refuses scales of 0 and below")

    @implements("rms_norm")
    def rms_norm(self, x: np.ndarray, *, weight: np.ndarray | None = None) -> np.ndarray:
        """``functional.rms_norm`` over the last axis."""
        given = {} if weight is None else {"weight": weight}
        _check_parameters(x.shape[-1:], given)

        def norm(x: torch.Tensor, weight: torch.Tensor | None = None) -> torch.Tensor:
            return functional.rms_norm(x, x.shape[-1:], weight, 1e-5)

        return self.by_row("rms_norm", norm, x=x, **given)


def _attend(causal: bool, scale: float | None) -> Function:
    def attend(
        q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        return functional.scaled_dot_product_attention(q, k, v, mask, 0.0, causal, scale=scale)

    return attend


def _attend_grouped(causal: bool, scale: float | None) -> Function:
    """``Attention`` of opset 23, for any numbers of heads that fit."""
    attributes: Any = {"is_causal": int(causal)} | ({} if scale is None else {"scale": scale})

    def attend(
        q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None = None
    ) -> torch.Tensor:
        given, shape = (q, k, v) if mask is None else (q, k, v, mask), (*q.shape[:3], v.shape[3])
        return torch.onnx.ops.symbolic(
            "Attention", given, attributes, dtype=q.dtype, shape=shape, version=23
        )

    return attend


def _masked_softmax(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    # Blocked weights are 0 already, but for a row that is blocked altogether.
    return torch.softmax(scores.masked_fill(~mask, -torch.inf), -1).masked_fill(~mask, 0.0)


def _check_parameters(shape: tuple[int, ...], given: dict[str, np.ndarray]) -> None:
    """ValueError for a parameter that would broadcast."""
    for name, parameter in given.items():
        if parameter.shape != shape:
            raise ValueError(f"{name} has shape {parameter.shape}; it must be {shape}")
