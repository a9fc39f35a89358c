"""jax.scan: scans by ``jax.lax.associative_scan`` and, step by step, by ``jax.lax.scan``."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from assay.impl.backends.jax_padded import COMPILE_SECONDS, Fit, PaddedBackend
from assay.impl.backends.shapes import longer
from assay.impl.contract import Contract
from assay.impl.protocol import implements

_ROWS, _TIMES, _WIDTHS = (4,), (16, 136, 544), (8,)
"""Lengths of each kind of axis that are compiled for: a tree takes a second for each."""


def _compose(first: tuple[Any, Any], then: tuple[Any, Any]) -> tuple[Any, Any]:
    return first[0] * then[0], then[0] * first[1] + then[1]


def _states(mode: str, a: Any, v: Any, start: Any, length: Any) -> Any:
    """h_t = a_t h_{t-1} + v_t, for v [B, T, E], start [B, E] and a that broadcasts to v; 0 from
    ``length`` on.
    """
    live = jnp.arange(v.shape[1])[:, None] < length
    # Else states would grow in the padding, and reach gradients as 0 times infinity.
    a = jnp.where(live, jnp.broadcast_to(a, v.shape), 0)
    if mode == "tree":
        v = v.at[:, 0].add(a[:, 0] * start)
        return jax.lax.associative_scan(_compose, (a, v), axis=1)[1]

    def step(h: Any, maps: tuple[Any, Any]) -> tuple[Any, Any]:
        after = maps[0] * h + maps[1]
        return after, after

    times = (jnp.swapaxes(a, 0, 1), jnp.swapaxes(v, 0, 1))
    return jnp.swapaxes(jax.lax.scan(step, start, times)[1], 0, 1)


def _start(h0: Any, x: Any) -> Any:
    return jnp.zeros((x.shape[0], x.shape[2]), x.dtype) if h0 is None else h0


def _affine(mode: str, a: Any, b: Any, x: Any, length: Any, h0: Any = None) -> Any:
    return _states(mode, a, b * x, _start(h0, x), length)


def _diagonal(
    mode: str,
    x: Any,
    a: Any,
    b: Any,
    c: Any,
    d: Any,
    in_proj: Any,
    readout: Any,
    length: Any,
    h0: Any = None,
) -> tuple[Any, Any]:
    u = x @ in_proj
    start = _start(h0, u)
    states = _states(mode, a, b * u, start, length)
    last = jnp.take(states, jnp.maximum(length - 1, 0), axis=1)
    return (c * states + d * u) @ readout, jnp.where(length > 0, last, start)


class JaxScan(PaddedBackend):
    """In each mode the same maps: composed as a tree, or applied one after the other."""

    contract = Contract(
        name="jax.scan",
        dtypes=("float32", "float64"),
        provider="XLA",
        block_sizes=(16,),
        subnormals=False,
        compile_seconds=COMPILE_SECONDS,
        modes=("tree", "loop"),
        requires=("jax",),
    )

    @implements("affine_scan")
    def affine_scan(self, a: Any, b: Any, x: Any, *, h0: Any = None) -> Any:
        """All states [B, T, E]."""
        for name, given in (("a", a), ("b", b)):
            if jnp.broadcast_shapes(given.shape, x.shape) != x.shape:
                raise ValueError(f"{name} {given.shape} must broadcast to {x.shape}")
        _check(h0=(h0, (x.shape[0], x.shape[2])))
        steps = _times(x.shape)
        arrays = {n: (y, _loose(y.shape, steps)) for n, y in (("a", a), ("b", b))}
        arrays["x"] = (x, steps)
        if h0 is not None:
            arrays["h0"] = (h0, _state(h0.shape))
        return self.run(_affine, arrays, {"states": steps}, (self.mode,), length=x.shape[1])

    @implements("diagonal_ssm")
    def diagonal_ssm(
        self,
        x: Any,
        a: Any,
        b: Any,
        c: Any,
        d: Any,
        in_proj: Any,
        readout: Any,
        *,
        h0: Any = None,
    ) -> Any:
        """Outputs [B, T, O] and the last state."""
        (batch, steps, width), channels = x.shape, in_proj.shape[1]
        one, state = (channels,), (batch, channels)
        _check(
            a=(a, one), b=(b, one), c=(c, one), d=(d, one), h0=(h0, state),
            in_proj=(in_proj, (width, channels)), readout=(readout, (channels, readout.shape[1])),
        )  # fmt: skip
        given = {"a": a, "b": b, "c": c, "d": d, "in_proj": in_proj, "readout": readout}
        arrays = {name: (array, _weight(array.shape)) for name, array in given.items()}
        arrays["x"] = (x, _times(x.shape))
        if h0 is not None:
            arrays["h0"] = (h0, _state(state))
        out = {"out": _times((batch, steps, readout.shape[1])), "state": _state(state)}
        return self.run(_diagonal, arrays, out, (self.mode,), length=steps)


def _times(shape: tuple[int, ...]) -> Fit:
    """For an array [B, T, E]."""
    wide = (longer(n, by) for n, by in zip(shape, (_ROWS, _TIMES, _WIDTHS), strict=True))
    return Fit(shape, shape, tuple(wide))


def _state(shape: tuple[int, ...]) -> Fit:
    """For a state [B, E]."""
    return Fit(shape, shape, (longer(shape[0], _ROWS), longer(shape[1], _WIDTHS)))


def _weight(shape: tuple[int, ...]) -> Fit:
    """For an array of widths alone."""
    return Fit(shape, shape, tuple(longer(n, _WIDTHS) for n in shape))


def _loose(shape: tuple[int, ...], steps: Fit) -> Fit:
    """As ``steps``, but what has to broadcast stays of length 1."""
    folded = (1,) * (len(steps.shape) - len(shape)) + shape
    axes = zip(folded, steps.shape, steps.wide, strict=True)
    return Fit(shape, folded, tuple(1 if n < due else wide for n, due, wide in axes))


def _check(**wanted: tuple[Any, tuple[int, ...]]) -> None:
    """ValueError for an input of another shape: it might broadcast."""
    for name, (given, shape) in wanted.items():
        if given is not None and tuple(given.shape) != shape:
            raise ValueError(f"{name} has shape {tuple(given.shape)}, should be {shape}")
