"""Sound layers to plant faults in, each a stage at a time: GELU, softplus, linear map, embedding,
dropout, layer norm and cross-entropy, in float32.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from assay.impl.contract import Contract
from assay.impl.numpy_backend import NumpyBackend
from assay.impl.protocol import implements, implements_vjp

Array = np.ndarray
Slopes = dict[str, Array]


def on_layers(name: str, **promises: Any) -> Contract:
    """A contract that differs from the common one in what is given."""
    common: dict[str, Any] = {"provider": "zoo", "exp_ulps": 4.0}
    return Contract(name, **{**common, **promises})


def fitting(name: str, given: Array | None, features: int) -> None:
    """ValueError unless a parameter has one entry for each feature."""
    if given is not None and given.shape != (features,):
        raise ValueError(f"{name} {given.shape} must be {(features,)}")


class Gelu(NumpyBackend):
    """By the erf of the C library, or by tanh."""

    contract = on_layers("zoo.gelu")

    @implements("gelu")
    def gelu(self, x: Array, *, approximate: str = "none") -> Array:
        """In float32, rounded once."""
        wide = x.astype(np.float64)
        return (wide * self.mass(wide, approximate)).astype(x.dtype)

    @implements_vjp("gelu")
    def gelu_vjp(self, x: Array, *, out: Array, approximate: str = "none") -> Slopes:
        """``out`` is the cotangent."""
        wide = x.astype(np.float64)
        slope = self.mass(wide, approximate) + wide * self.density(wide, approximate)
        return {"x": (out * slope).astype(x.dtype)}

    def mass(self, x: Array, form: str) -> Array:
        """The normal distribution below x, or its stand-in."""
        if form == "tanh":
            return 0.5 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
        return np.asarray(np.frompyfunc(_normal, 1, 1)(x), dtype=np.float64).reshape(x.shape)

    def density(self, x: Array, form: str) -> Array:
        """The derivative of ``mass``."""
        if form == "tanh":
            inner = math.sqrt(2 / math.pi) * (1 + 3 * 0.044715 * x**2)
            p = self.mass(x, form)
            return np.asarray(2 * p * (1 - p) * inner)
        return np.asarray(np.exp(-x * x / 2) / math.sqrt(2 * math.pi))


def _normal(x: float) -> float:
    return 0.5 * math.erfc(-x / math.sqrt(2))


class Softplus(NumpyBackend):
    """max(x, 0) + log1p(exp(-|x|))."""

    contract = on_layers("zoo.softplus")

    @implements("softplus")
    def softplus(self, x: Array) -> Array:
        """In float32."""
        with np.errstate(over="ignore"):
            return self.forward(x.astype(np.float32)).astype(x.dtype)

    @implements_vjp("softplus")
    def softplus_vjp(self, x: Array, *, out: Array) -> Slopes:
        """``out`` is the cotangent."""
        wide = x.astype(np.float64)
        return {"x": (out / (1 + np.exp(-wide))).astype(x.dtype)}

    def forward(self, x: Array) -> Array:
        """The stable form."""
        return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


class Linear(NumpyBackend):
    """Inputs in blocks of 16, the last one first."""

    contract = on_layers("zoo.linear", block_sizes=(16,))

    @implements("linear")
    def linear(self, x: Array, weight: Array, *, bias: Array | None = None) -> Array:
        """x W^T + b."""
        if x.shape[-1] != weight.shape[1]:
            raise ValueError(f"x {x.shape} does not fit weight {weight.shape}")
        total = np.zeros((*x.shape[:-1], weight.shape[0]), np.float32)
        for part in reversed(self.blocks(weight.shape[1])):
            total += x[..., part].astype(np.float32) @ weight[:, part].T.astype(np.float32)
        return (total if bias is None else total + bias).astype(x.dtype)

    @implements_vjp("linear")
    def linear_vjp(
        self, x: Array, weight: Array, *, out: Array, bias: Array | None = None
    ) -> Slopes:
        """``out`` is the cotangent."""
        rows = out.reshape(-1, weight.shape[0]).astype(np.float32)
        inputs = x.reshape(-1, weight.shape[1]).astype(np.float32)
        slopes = {
            "x": (rows @ weight.astype(np.float32)).reshape(x.shape),
            "weight": self.into_weight(rows, inputs),
            "bias": rows.sum(axis=0),
        }
        return {n: s.astype(x.dtype) for n, s in slopes.items() if n != "bias" or bias is not None}

    def blocks(self, width: int) -> list[slice]:
        """Stretches of the inputs."""
        return [slice(i, i + 16) for i in range(0, width, 16)]

    def into_weight(self, rows: Array, inputs: Array) -> Array:
        """g^T x."""
        return rows.T @ inputs


class Embedding(NumpyBackend):
    """Rows by index, gradients added up one by one."""

    contract = on_layers("zoo.embedding")

    @implements("embedding")
    def embedding(self, ids: Array, table: Array, *, padding_idx: int | None = None) -> Array:
        """Rows of the table."""
        if ids.size and int(ids.max()) >= len(table):
            raise IndexError("an identifier lies beyond the table")
        return np.asarray(table[self.place(ids)])

    @implements_vjp("embedding")
    def embedding_vjp(
        self, ids: Array, table: Array, *, out: Array, padding_idx: int | None = None
    ) -> Slopes:
        """``out`` is the cotangent."""
        total = np.zeros(table.shape, np.float32)
        self.add(total, ids.reshape(-1), out.reshape(-1, table.shape[1]).astype(np.float32))
        return {"table": self.padded(total, padding_idx).astype(table.dtype)}

    def place(self, ids: Array) -> Array:
        """Where the row of an identifier lies."""
        return ids

    def add(self, total: Array, ids: Array, rows: Array) -> None:
        """Each row to the gradient of its identifier."""
        np.add.at(total, ids, rows)

    def padded(self, total: Array, padding_idx: int | None) -> Array:
        """Nothing for the padding row."""
        if padding_idx is not None:
            total[padding_idx] = 0
        return total


class Dropout(NumpyBackend):
    """Dropped entries are replaced by 0."""

    contract = on_layers("zoo.dropout")

    @implements("dropout")
    def dropout(self, x: Array, keep: Array, *, p: float = 0.5, training: bool = True) -> Array:
        """Kept entries times 1 / (1 - p)."""
        if keep.shape != x.shape:
            raise ValueError(f"keep {keep.shape} must be {x.shape}")
        return self.forward(x, keep, p, training).astype(x.dtype)

    @implements_vjp("dropout")
    def dropout_vjp(
        self, x: Array, keep: Array, *, out: Array, p: float = 0.5, training: bool = True
    ) -> Slopes:
        """``out`` is the cotangent."""
        return {"x": self.backward(out, keep, p, training).astype(x.dtype)}

    def forward(self, x: Array, keep: Array, p: float, training: bool) -> Array:
        """The same map for values and cotangents."""
        if not training:
            return x.copy()
        return np.where(keep, x / np.float32(1 - p), 0) if p < 1 else np.zeros_like(x)

    def backward(self, g: Array, keep: Array, p: float, training: bool) -> Array:
        """The gradient."""
        return self.forward(g, keep, p, training)


class LayerNorm(NumpyBackend):
    """Mean and variance in two passes."""

    contract = on_layers("zoo.layer-norm")

    @implements("layer_norm")
    def layer_norm(
        self,
        x: Array,
        *,
        weight: Array | None = None,
        bias: Array | None = None,
        eps: float = 1e-5,
    ) -> Array:
        """Over the last axis."""
        fitting("weight", weight, x.shape[-1])
        fitting("bias", bias, x.shape[-1])
        z, _ = self.standardized(x.astype(np.float32), np.float32(eps))
        y = z if weight is None else z * weight
        return (y if bias is None else y + bias).astype(x.dtype)

    @implements_vjp("layer_norm")
    def layer_norm_vjp(
        self,
        x: Array,
        *,
        out: Array,
        weight: Array | None = None,
        bias: Array | None = None,
        eps: float = 1e-5,
    ) -> Slopes:
        """``out`` is the cotangent."""
        z, rate = self.standardized(x.astype(np.float32), np.float32(eps))
        g = out.astype(np.float32)
        slopes = {"x": self.backward(z, rate, g if weight is None else g * weight)}
        others = tuple(range(x.ndim - 1))
        if weight is not None:
            slopes["weight"] = (g * z).sum(axis=others)
        if bias is not None:
            slopes["bias"] = g.sum(axis=others)
        return {n: s.astype(x.dtype) for n, s in slopes.items()}

    def standardized(self, x: Array, eps: Any) -> tuple[Array, Array]:
        """z, and 1 / sqrt(var + eps)."""
        away = x - self.mean(x)
        rate = 1 / np.sqrt((away * away).mean(axis=-1, keepdims=True) + eps)
        return away * rate, rate

    def mean(self, x: Array) -> Array:
        """Of each row."""
        return x.mean(axis=-1, keepdims=True)

    def backward(self, z: Array, rate: Array, h: Array) -> Array:
        """(h - mean h - z mean(h z)) / sqrt(var + eps)."""
        along = (h * z).mean(axis=-1, keepdims=True)
        return (h - h.mean(axis=-1, keepdims=True) - z * along) * rate


class Entropy(NumpyBackend):
    """Cross-entropy with logits in blocks of 32 and a running maximum."""

    contract = on_layers("zoo.cross-entropy", block_sizes=(32,))

    @implements("cross_entropy")
    def cross_entropy(
        self,
        logits: Array,
        targets: Array,
        *,
        ignore_index: int = -100,
        label_smoothing: float = 0.0,
        reduction: str = "mean",
        all_ignored: str = "nan",
    ) -> Array:
        """Losses of rows that count, reduced."""
        if targets.shape != logits.shape[:-1]:
            raise ValueError(f"targets {targets.shape}, logits {logits.shape}")
        counts = self.counts(targets, ignore_index)
        loss = np.zeros(targets.shape, np.float32)
        loss[counts] = self.losses(
            logits[counts].astype(np.float32), targets[counts], label_smoothing
        )
        if reduction == "none":
            return loss.astype(logits.dtype)
        number: float = self.number(counts) if reduction == "mean" else 1
        if number == 0:
            number = 1 if all_ignored == "zero" else np.nan
        return np.asarray(loss.sum() / np.float32(number), logits.dtype)

    @implements_vjp("cross_entropy")
    def cross_entropy_vjp(
        self,
        logits: Array,
        targets: Array,
        *,
        loss: Array,
        ignore_index: int = -100,
        label_smoothing: float = 0.0,
        reduction: str = "mean",
        all_ignored: str = "nan",
    ) -> Slopes:
        """``loss`` is the cotangent."""
        counts = self.counts(targets, ignore_index)
        x = logits.astype(np.float32)
        away = self.away(np.where(counts[:, None], x, 0), targets, counts, label_smoothing)
        slope = loss[:, None] if reduction == "none" else loss
        number = max(self.number(counts), 1) if reduction == "mean" else 1
        slopes = self.blanked(away * (slope / np.float32(number)), x, counts)
        return {"logits": slopes.astype(logits.dtype)}

    def counts(self, targets: Array, ignore_index: int) -> Array:
        """Which rows count."""
        return np.asarray(targets != ignore_index)

    def number(self, counts: Array) -> int:
        """How many rows a mean is divided by."""
        return int(counts.sum())

    def mass(self, x: Array) -> tuple[Array, Array]:
        """The maximum and the logarithm of the sum of exp(x - maximum), block by block."""
        top = np.full((*x.shape[:-1], 1), -np.inf, np.float32)
        total = np.zeros_like(top)
        for i in range(0, x.shape[-1], 32):
            part = x[..., i : i + 32]
            new = np.maximum(top, part.max(axis=-1, keepdims=True))
            total = total * np.exp(top - new) + np.exp(part - new).sum(axis=-1, keepdims=True)
            top = new
        return top, np.log(total)

    def losses(self, x: Array, targets: Array, smoothing: float) -> Array:
        """Of rows that count."""
        if not x.size:
            return np.zeros(len(x), np.float32)
        top, log = self.mass(x)
        minus = log - (x - top)
        hit = np.take_along_axis(minus, targets[:, None], axis=1)[:, 0]
        return self.mixed(hit, minus.mean(axis=1), smoothing)

    def mixed(self, hit: Array, spread: Array, smoothing: float) -> Array:
        """The loss of the target with the mean over all classes."""
        s = np.float32(smoothing)
        return (1 - s) * hit + s * spread if smoothing else hit

    def away(self, x: Array, targets: Array, counts: Array, smoothing: float) -> Array:
        """p minus what is wanted."""
        top, log = self.mass(x)
        p = np.exp(x - top - log)
        hit = (np.arange(x.shape[1]) == targets[:, None]) & counts[:, None]
        return p - np.float32(smoothing / x.shape[1]) - np.float32(1 - smoothing) * hit

    def blanked(self, slopes: Array, x: Array, counts: Array) -> Array:
        """0 where a row does not count."""
        return np.where(counts[:, None], slopes, 0)
