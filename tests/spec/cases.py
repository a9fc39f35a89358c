"""Drawn cases of softmax and attention, and independent evaluations of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from hypothesis import strategies as st

from assay.spec.attention import Window


@dataclass(frozen=True)
class Case:
    """Arrays of one attention call in float64, and its keywords."""

    q: np.ndarray
    k: np.ndarray
    v: np.ndarray
    cotangent: np.ndarray
    rules: dict[str, Any]

    @property
    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        return self.q, self.k, self.v

    @property
    def unseen(self) -> np.ndarray:
        """Keys [B, Hkv, S] that no query of any head of their group sees."""
        batch, kv_heads, keys, _ = self.k.shape
        group = self.q.shape[1] // kv_heads
        seen = np.any(self.allowed, axis=2, keepdims=True).reshape(batch, kv_heads, group, keys)
        return ~np.any(seen, axis=2, keepdims=True).reshape(batch, kv_heads, keys)

    @property
    def blind(self) -> np.ndarray:
        """Queries [B, H, L] that see no key."""
        return ~np.any(self.allowed, axis=-1, keepdims=True)[..., 0]

    @property
    def allowed(self) -> np.ndarray:
        """Which pairs are visible, from loops over positions: nothing of the spec is called."""
        batch, heads, queries, _ = self.q.shape
        keys = self.k.shape[2]
        allowed = np.ones((batch, heads, queries, keys), dtype=bool)
        offset = self.rules.get("offset", 0)
        window: Window | None = self.rules.get("window")
        for i in range(queries):
            for j in range(keys):
                distance = j - (offset + i)
                if self.rules.get("causal") and distance > 0:
                    allowed[..., i, j] = False
                if window is not None:
                    left, right = window
                    late = right is not None and distance > right
                    early = left is not None and -distance > left
                    if late or early:
                        allowed[..., i, j] = False
        mask = self.rules.get("mask")
        if mask is None:
            return allowed
        return allowed & (mask if mask.dtype == bool else mask > -np.inf)


@st.composite
def cases(
    draw: st.DrawFn, *, smallest: int = 0, longest: int = 7, sizes: tuple[float, ...] = (1.0, 8.0)
) -> Case:
    """An attention call: grouped heads, mask of either kind, causal rule, offset, window, scale."""
    kv_heads, group = draw(st.sampled_from([(1, 1), (2, 1), (1, 3), (2, 2)]))
    batch = draw(st.integers(max(smallest, 1), 2))
    queries, keys = (draw(st.integers(smallest, longest)) for _ in "LS")
    width, value_width = (draw(st.integers(max(smallest, 1), 4)) for _ in "DW")
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size = draw(st.sampled_from(sizes))
    heads = kv_heads * group
    rules: dict[str, Any] = {}
    if draw(st.booleans()):
        rules["causal"] = True
    if draw(st.booleans()):
        rules["offset"] = draw(st.integers(-3, 5))
    if draw(st.booleans()):
        side = st.none() | st.integers(0, 4)
        rules["window"] = (draw(side), draw(side))
    scale = draw(st.sampled_from([None, 1.0, 0.0, -0.5, 0.01]))
    if scale is not None:
        rules["scale"] = scale
    kind = draw(st.sampled_from(["none", "bool", "additive"]))
    if kind != "none":
        shape = (batch, heads, queries, keys)
        mask = rng.random(shape) < draw(st.sampled_from([0.2, 0.7]))
        rules["mask"] = mask if kind == "bool" else np.where(mask, rng.normal(size=shape), -np.inf)
    return Case(
        q=rng.normal(size=(batch, heads, queries, width)) * size,
        k=rng.normal(size=(batch, kv_heads, keys, width)),
        v=rng.normal(size=(batch, kv_heads, keys, value_width)),
        cotangent=rng.normal(size=(batch, heads, queries, value_width)),
        rules=rules,
    )


def torch_attention(
    case: Case, dtype: torch.dtype = torch.float64
) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Output and gradients by torch: plain formula with autograd, blocked scores taken out."""
    leaves = [torch.tensor(x, dtype=dtype, requires_grad=True) for x in case.arrays]
    q, k, v = leaves
    group = q.shape[1] // k.shape[1]
    k, v = (x.repeat_interleave(group, dim=1) for x in (k, v))
    scale = case.rules.get("scale", q.shape[-1] ** -0.5)
    scores = q @ k.transpose(-1, -2) * scale
    mask, allowed = case.rules.get("mask"), torch.tensor(case.allowed)
    if mask is not None and mask.dtype != bool:
        scores = scores + torch.tensor(np.where(np.isneginf(mask), 0.0, mask), dtype=dtype)
    # A row that sees nothing keeps its scores and loses its weights: -inf everywhere would be NaN.
    seen = allowed.any(-1, keepdim=True)
    weights = torch.softmax(scores.masked_fill(~allowed & seen, -torch.inf), dim=-1)
    weights = torch.where(seen, weights, 0.0)
    out = weights @ v
    (out * torch.tensor(case.cotangent, dtype=dtype)).sum().backward()
    grads = {name: x.grad for name, x in zip("qkv", leaves, strict=True)}
    return out.detach().numpy(), {n: g.numpy() for n, g in grads.items() if g is not None}
