"""Attention evaluated in a low precision, every operation rounded, sums taken in a chosen order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from assay.spec.arithmetic import Arithmetic
from assay.spec.attention import default_scale
from tests.spec.cases import Case

DTYPES: dict[str, np.dtype] = {
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float32": np.dtype(np.float32),
    "float64": np.dtype(np.float64),
}
Sum = Callable[[np.ndarray], np.ndarray]


def forward_sum(x: np.ndarray) -> np.ndarray:
    """Sum along the last axis from the first term to the last."""
    total = np.zeros(x.shape[:-1], x.dtype)
    for j in range(x.shape[-1]):
        total = total + x[..., j]
    return total


def backward_sum(x: np.ndarray) -> np.ndarray:
    """Sum along the last axis from the last term to the first."""
    return forward_sum(x[..., ::-1])


def pairwise_sum(x: np.ndarray) -> np.ndarray:
    """Sum along the last axis by halves."""
    if x.shape[-1] < 2:
        return forward_sum(x)
    half = x.shape[-1] // 2
    return pairwise_sum(x[..., :half]) + pairwise_sum(x[..., half:])


def rising_sum(x: np.ndarray) -> np.ndarray:
    """Sum along the last axis in rising order, so that opposite signs cancel last."""
    return forward_sum(np.sort(x.astype(np.float64), axis=-1).astype(x.dtype))


ORDERS: dict[str, Sum] = {
    "forward": forward_sum,
    "backward": backward_sum,
    "pairwise": pairwise_sum,
    "rising": rising_sum,
}


@dataclass(frozen=True)
class Evaluation:
    """An implementation that rounds as ``arithmetic`` says and sums as ``order`` says."""

    arithmetic: Arithmetic
    order: Sum
    scale_error: float = 0.0

    def _acc(self, x: np.ndarray) -> np.ndarray:
        return x.astype(DTYPES[self.arithmetic.accumulate])

    def _keep(self, x: np.ndarray) -> np.ndarray:
        return self._acc(x.astype(DTYPES[self.arithmetic.intermediate]))

    def _store(self, x: np.ndarray) -> np.ndarray:
        stored = x.astype(DTYPES[self.arithmetic.storage])
        wide = np.longdouble if self.arithmetic.storage == "float64" else np.float64
        return stored.astype(wide)

    def _exp(self, x: np.ndarray) -> np.ndarray:
        """Rounded once, from a wider format; of base 2 where the scores are in that base."""
        power = np.exp2 if self.arithmetic.exp2 else np.exp
        return self._acc(power(x.astype(np.longdouble)))

    def _dot(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """a [..., m, n] times b [..., p, n], transposed: [..., m, p]."""
        return self.order(a[..., :, None, :] * b[..., None, :, :])

    def _scores(self, case: Case) -> np.ndarray:
        q, k = self._acc(case.q), self._wide(case.k, case)
        factor = case.rules.get("scale", default_scale(case.q.shape[-1])) * (1 + self.scale_error)
        scores = self._keep(self._keep(self._dot(q, k)) * self._acc(np.asarray(factor)))
        mask = case.rules.get("mask")
        if mask is not None and mask.dtype != bool:
            scores = self._keep(scores + self._acc(np.where(np.isneginf(mask), 0.0, mask)))
        if self.arithmetic.exp2:
            scores = self._keep(scores * self._acc(np.asarray(np.log2(np.e))))
        return scores

    def weights(self, case: Case) -> np.ndarray:
        """Weights [B, H, L, S] in the accumulation format."""
        scores, allowed = self._scores(case), case.allowed
        top = np.max(scores, axis=-1, keepdims=True, where=allowed, initial=-np.inf)
        top = np.where(allowed.any(axis=-1, keepdims=True), top, 0)
        raised = self._exp(np.where(allowed, scores - top, -np.inf))
        mass = self.order(raised)[..., None]
        return self._keep(raised / np.where(mass == 0, np.ones_like(mass), mass))

    def _wide(self, x: np.ndarray, case: Case) -> np.ndarray:
        return self._acc(np.repeat(x, case.q.shape[1] // x.shape[1], axis=1))

    def output(self, case: Case) -> np.ndarray:
        """O, stored and widened again."""
        values = np.swapaxes(self._wide(case.v, case), -1, -2)
        return self._store(self._dot(self.weights(case), values))

    def tiled_output(self, case: Case) -> np.ndarray:
        """O by the online recurrence over ``arithmetic.block`` keys, stored and widened again."""
        scores, values = self._scores(case), self._wide(case.v, case)
        rows, width, kind = scores.shape[:-1], values.shape[-1], scores.dtype
        top = np.full((*rows, 1), -np.inf, kind)
        mass, acc = np.zeros((*rows, 1), kind), np.zeros((*rows, width), kind)
        for start in range(0, scores.shape[-1], self.arithmetic.block):
            part = slice(start, start + self.arithmetic.block)
            s = np.where(case.allowed[..., part], scores[..., part], kind.type(-np.inf))
            higher = np.maximum(top, np.max(s, axis=-1, keepdims=True))
            shift = np.where(np.isneginf(higher), np.zeros_like(higher), higher)
            rescale, raised = self._exp(top - shift), self._exp(s - shift)
            mass = mass * rescale + self.order(raised)[..., None]
            acc = acc * rescale + self._dot(raised, np.swapaxes(values[..., part, :], -1, -2))
            top = higher
        return self._store(acc / np.where(mass == 0, np.ones_like(mass), mass))

    def gradients(self, case: Case) -> dict[str, np.ndarray]:
        """dQ, dK and dV, stored and widened again."""
        q, g = self._acc(case.q), self._acc(case.cotangent)
        k, v, w = self._wide(case.k, case), self._wide(case.v, case), self.weights(case)
        factor = case.rules.get("scale", default_scale(case.q.shape[-1])) * (1 + self.scale_error)
        dw = self._keep(self._dot(g, v))
        mean = self.order(dw * w)[..., None]
        ds = self._keep(w * (dw - mean))
        flip = np.swapaxes
        raw = {
            "q": self._dot(ds, flip(k, -1, -2)) * self._acc(np.asarray(factor)),
            "k": self._dot(flip(ds, -1, -2), flip(q, -1, -2)) * self._acc(np.asarray(factor)),
            "v": self._dot(flip(w, -1, -2), flip(g, -1, -2)),
        }
        return {"q": self._store(raw["q"])} | {n: self._grouped(raw[n], case) for n in "kv"}

    def _grouped(self, x: np.ndarray, case: Case) -> np.ndarray:
        """Sum over the query heads that share a key head."""
        batch, heads, keys, width = x.shape
        kv_heads = case.k.shape[1]
        groups = x.reshape(batch, kv_heads, heads // kv_heads, keys, width)
        return self._store(self.order(np.moveaxis(groups, 2, -1)))


def representable(case: Case, storage: str) -> Case:
    """The case with every array rounded to the storage format, held in a wider one."""
    wide = np.longdouble if storage == "float64" else np.float64

    def rounded(x: np.ndarray) -> np.ndarray:
        return x.astype(DTYPES[storage]).astype(wide)

    rules = dict(case.rules)
    if rules.get("mask") is not None and rules["mask"].dtype != bool:
        rules["mask"] = rounded(rules["mask"])
    q, k, v, cotangent = (rounded(x) for x in (*case.arrays, case.cotangent))
    return Case(q, k, v, cotangent, rules)
