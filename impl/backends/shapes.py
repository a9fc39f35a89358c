"""The shape rules of the ops, for kernels that would broadcast where the op does not. Any arrays
with ``shape`` will do.
"""

from __future__ import annotations

from typing import Any


def check_attention(q: Any, k: Any, v: Any, mask: Any = None) -> None:
    """ValueError unless q [B, H, L, D], k [B, Hkv, S, D], v [B, Hkv, S, Dv] and the mask fit
    together.
    """
    shapes = f"q {tuple(q.shape)}, k {tuple(k.shape)}, v {tuple(v.shape)}"
    if not len(q.shape) == len(k.shape) == len(v.shape) == 4:
        raise ValueError(f"{shapes}: each must have 4 axes")
    (batch, heads, queries, width), keys = q.shape, k.shape[2]
    if k.shape[0] != batch or k.shape[3] != width:
        raise ValueError(f"{shapes}: batch and width of k must be those of q")
    if tuple(v.shape[:3]) != tuple(k.shape[:3]):
        raise ValueError(f"{shapes}: batch, heads and length of v must be those of k")
    if heads % k.shape[1] if k.shape[1] else heads:
        raise ValueError(f"{shapes}: heads of q must be a multiple of heads of k")
    check_mask(mask, (batch, heads, queries, keys))


def check_softmax(scores: Any, mask: Any = None) -> None:
    """ValueError unless scores have an axis to normalise and the mask broadcasts to their shape."""
    if not scores.shape:
        raise ValueError("scores must have at least 1 axis")
    check_mask(mask, tuple(scores.shape))


def check_mask(mask: Any, shape: tuple[int, ...]) -> None:
    """ValueError unless ``mask`` is None or broadcasts to ``shape`` without growing it."""
    if mask is None:
        return
    got = tuple(mask.shape)
    fits = len(got) <= len(shape) and all(
        a in (1, b) for a, b in zip(reversed(got), reversed(shape), strict=False)
    )
    if not fits:
        raise ValueError(f"mask {got} must broadcast to {shape}")
