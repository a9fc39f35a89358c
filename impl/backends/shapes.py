"""The shape rules of the ops, for kernels that would broadcast where the op does not. Any arrays
with ``shape`` will do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

PerAxis = int | Sequence[int]
"""One number for all spatial axes, or one for each."""


def each(value: PerAxis, axes: int) -> tuple[int, ...]:
    """One number for each axis."""
    return tuple(value) if isinstance(value, Sequence) else (value,) * axes


def longer(length: int, steps: Sequence[int]) -> int:
    """The next length that kernels are compiled for: a step or, beyond the last, a power of two.

    >>> longer(5, (32, 136)), longer(136, (32, 136)), longer(545, (32, 136))
    (32, 136, 1024)
    """
    fitting = [step for step in steps if step >= length]
    return fitting[0] if fitting else 1 << (length - 1).bit_length()


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


def check_shapes(**wanted: tuple[Any, tuple[int, ...]]) -> None:
    """ValueError for an input that is given in another shape than wanted: it might broadcast."""
    for name, (given, shape) in wanted.items():
        if given is not None and tuple(given.shape) != shape:
            raise ValueError(f"{name} has shape {tuple(given.shape)}, should be {shape}")


def check_selective_scan(
    u: Any, delta: Any, a: Any, b: Any, c: Any, d: Any = None, h0: Any = None
) -> None:
    """ValueError unless u, delta [B, T, E], a [E, N], b, c [B, T, N], d [E] and h0 [B, E, N]."""
    if len(u.shape) != 3 or len(a.shape) != 2:
        raise ValueError(
            f"u {tuple(u.shape)} must have 3 axes [B, T, E], a {tuple(a.shape)} 2 axes [E, N]"
        )
    (batch, steps, channels), states = u.shape, a.shape[1]
    mix = (batch, steps, states)
    check_shapes(
        delta=(delta, (batch, steps, channels)), a=(a, (channels, states)), b=(b, mix), c=(c, mix),
        d=(d, (channels,)), h0=(h0, (batch, channels, states)),
    )  # fmt: skip


def check_causal_conv1d(x: Any, weight: Any, bias: Any = None, history: Any = None) -> None:
    """ValueError unless x [B, T, E], weight [K, E] with K at least 1, bias [E] and history
    [B, K-1, E].
    """
    if len(x.shape) != 3 or len(weight.shape) != 2 or weight.shape[0] < 1:
        raise ValueError(
            f"x {tuple(x.shape)} must have 3 axes [B, T, E], weight {tuple(weight.shape)} 2 axes "
            "[K, E] with K at least 1"
        )
    (batch, _, channels), taps = x.shape, weight.shape[0]
    check_shapes(
        weight=(weight, (taps, channels)), bias=(bias, (channels,)),
        history=(history, (batch, taps - 1, channels)),
    )  # fmt: skip
