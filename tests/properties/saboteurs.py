"""A wrong backend for each property: the sound numpy backend with one thing spoilt.

Each is the least that the property is about, so that it shows that the property can fail.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from assay.impl import implements, implements_vjp
from assay.impl.backends.numpy_float32 import NumpyFloat32
from assay.impl.protocol import Backend
from tests.properties.saboteurs_blocks import BLOCKS
from tests.properties.saboteurs_cache import CACHE
from tests.properties.saboteurs_grids import GRIDS
from tests.properties.saboteurs_layers import LAYERS
from tests.properties.saboteurs_models import WHOLE
from tests.properties.saboteurs_sequences import SEQUENCES
from tests.properties.saboteurs_training import TRAINING

Array = np.ndarray
Spoil = Callable[["Saboteur", dict[str, Any], Array], Array]
SpoilGradients = Callable[["Saboteur", dict[str, Any], dict[str, Array]], dict[str, Array]]


class Saboteur(NumpyFloat32):
    """The numpy backend; ``spoil`` gets the call and the right output, and gives the wrong one."""

    def __init__(
        self, spoil: Spoil | None = None, gradients: SpoilGradients | None = None, **contract: Any
    ) -> None:
        self.contract = replace(NumpyFloat32.contract, name="saboteur", **contract)
        self.spoil, self.spoil_gradients = spoil, gradients
        self.memory: dict[Any, Any] = {}

    def _out(self, call: dict[str, Any], out: Array) -> Array:
        return out if self.spoil is None else self.spoil(self, call, out)

    def _grads(self, call: dict[str, Any], grads: dict[str, Array]) -> dict[str, Array]:
        return grads if self.spoil_gradients is None else self.spoil_gradients(self, call, grads)

    @implements("masked_softmax")
    def masked_softmax(self, scores: Array, *, mask: Array | None = None) -> Array:
        call = {"scores": scores, "mask": mask}
        return self._out(call, super().masked_softmax(scores, mask=mask))

    @implements_vjp("masked_softmax")
    def masked_softmax_vjp(
        self, scores: Array, *, mask: Array | None = None, weights: Array
    ) -> dict[str, Array]:
        call = {"scores": scores, "mask": mask, "g": weights}
        return self._grads(call, super().masked_softmax_vjp(scores, mask=mask, weights=weights))

    @implements("attention")
    def attention(
        self,
        q: Array,
        k: Array,
        v: Array,
        *,
        mask: Array | None = None,
        causal: bool = False,
        offset: int = 0,
        window: Any = None,
        scale: float | None = None,
    ) -> Array:
        rest = {"mask": mask, "causal": causal, "offset": offset, "window": window, "scale": scale}
        call = {"q": q, "k": k, "v": v, **rest}
        return self._out(call, super().attention(q, k, v, **rest))

    @implements_vjp("attention")
    def attention_vjp(
        self,
        q: Array,
        k: Array,
        v: Array,
        *,
        out: Array,
        mask: Array | None = None,
        causal: bool = False,
        offset: int = 0,
        window: Any = None,
        scale: float | None = None,
    ) -> dict[str, Array]:
        rest = {"mask": mask, "causal": causal, "offset": offset, "window": window, "scale": scale}
        call = {"q": q, "k": k, "v": v, "g": out, **rest}
        return self._grads(call, super().attention_vjp(q, k, v, out=out, **rest))


def _blocked(call: dict[str, Any]) -> Array:
    mask = call["mask"]
    return (
        np.zeros(call["scores"].shape, bool)
        if mask is None
        else ~np.broadcast_to(mask, call["scores"].shape)
    )


def _first(out: Array, by: float) -> Array:
    """The output with a thousandth of ``by`` added to its first element."""
    out = out.copy()
    if out.size:
        out.flat[0] += np.asarray(1e-3 * np.tanh(np.nan_to_num(by)), out.dtype)
    return out


def _times(factor: float) -> Spoil:
    return lambda self, call, out: (out * factor).astype(out.dtype)


def _grad_times(factor: float) -> SpoilGradients:
    return lambda self, call, grads: {n: (g * factor).astype(g.dtype) for n, g in grads.items()}


def _grad_plus(by: float, *names: str) -> SpoilGradients:
    return lambda self, call, grads: {
        n: (g + np.asarray(by, g.dtype)).astype(g.dtype) if n in names else g
        for n, g in grads.items()
    }


def _leak_blocked(self: Saboteur, call: dict[str, Any], out: Array) -> Array:
    """The first row depends a little on a blocked score or value that is finite and large."""
    if "scores" in call:
        blocked = call["scores"][_blocked(call)]
        return _first(out, float(np.sum(np.abs(np.nan_to_num(blocked)) > 1e4)))
    return _first(out, float(np.nan_to_num(call["v"][:, :, -1]).sum()))


def _rows_far(self: Saboteur, call: dict[str, Any], out: Array) -> Array:
    return (out * (1 + 1e-3 * call["q"].shape[2])).astype(out.dtype)


def _keys_far(self: Saboteur, call: dict[str, Any], out: Array) -> Array:
    return (out * (1 + 1e-3 * call["k"].shape[2])).astype(out.dtype)


def _batch(self: Saboteur, call: dict[str, Any], out: Array) -> Array:
    return (out * (1 + 1e-3 * out.shape[0])).astype(out.dtype)


def _ramp(axis: int) -> Spoil:
    def spoil(self: Saboteur, call: dict[str, Any], out: Array) -> Array:
        shape = [1] * out.ndim
        shape[axis] = out.shape[axis]
        return (out * (1 + 1e-3 * np.arange(out.shape[axis]).reshape(shape))).astype(out.dtype)

    return spoil


def _weight_by_place(self: Saboteur, call: dict[str, Any], out: Array) -> Array:
    return out + np.asarray(1e-3 * call["k"][:, :1, -1:, :1].astype(np.float64), out.dtype)


def _nonlinear(self: Saboteur, call: dict[str, Any], out: Array) -> Array:
    return (out + 1e-3 * np.sign(out)).astype(out.dtype)


def _empty_rows(value: float) -> Spoil:
    def spoil(self: Saboteur, call: dict[str, Any], out: Array) -> Array:
        if call["mask"] is None:
            return out
        mask = (
            call["mask"]
            if call["mask"].dtype == bool
            else ~np.isneginf(call["mask"].astype(np.float64))
        )
        rows = np.broadcast_to(mask.any(axis=-1, keepdims=True), (*out.shape[:-1], 1))
        return np.where(rows, out, np.asarray(value, out.dtype))

    return spoil


def _poison(self: Saboteur, call: dict[str, Any], out: Array) -> Array:
    """0 * NaN: non-finite values reach everything."""
    return (out + 0 * call["v"].sum() + 0 * call["k"].sum()).astype(out.dtype)


def _swallow(self: Saboteur, call: dict[str, Any], out: Array) -> Array:
    return np.nan_to_num(out)


def _heads(self: Saboteur, call: dict[str, Any], out: Array) -> Array:
    order = [h % call["k"].shape[1] for h in range(call["q"].shape[1])]
    rest = {n: call[n] for n in ("mask", "causal", "offset", "window", "scale")}
    return NumpyFloat32.attention(self, call["q"], call["k"][:, order], call["v"][:, order], **rest)


def _mode(self: Saboteur, call: dict[str, Any], out: Array) -> Array:
    return (out * 1.01).astype(out.dtype) if self.mode == "slow" else out


def _no_scale(self: Saboteur, call: dict[str, Any], out: Array) -> Array:
    rest = {n: call[n] for n in ("mask", "causal", "offset", "window")}
    return NumpyFloat32.attention(self, call["q"], call["k"], call["v"], **rest)


def _scores_plus_max(self: Saboteur, call: dict[str, Any], out: Array) -> Array:
    return (out * (1 + 1e-3 * np.tanh(call["scores"].max(initial=0.0)))).astype(out.dtype)


def _with_mask(self: Saboteur, call: dict[str, Any], out: Array) -> Array:
    return out if call["mask"] is None else (out * 1.001).astype(out.dtype)


def _leading(self: Saboteur, call: dict[str, Any], out: Array) -> Array:
    """NaN once eight leading keys are blocked: exp(-inf + inf) in an online form."""
    blocked = _blocked(call)
    hit = blocked[..., :8].all(axis=-1, keepdims=True) & (blocked.shape[-1] > 8)
    return np.where(hit, np.asarray(np.nan, out.dtype), out)


def _overwrite(self: Saboteur, call: dict[str, Any], out: Array) -> Array:
    target = call["scores" if "scores" in call else "q"]
    if target.size and target.flags.writeable:
        target += np.asarray(1, target.dtype)
    return out


def _beyond(self: Saboteur, call: dict[str, Any], out: Array) -> Array:
    """Write one element past the end of the first input."""
    target = call["scores" if "scores" in call else "q"]
    if target.size and target.flags.c_contiguous:
        longer = np.lib.stride_tricks.as_strided(
            target.reshape(-1), (target.size + 1,), (target.itemsize,)
        )
        longer[-1] = np.asarray(1, target.dtype)
    return out


def _stale(self: Saboteur, call: dict[str, Any], out: Array) -> Array:
    buffer = self.memory.setdefault(out.shape, out)
    buffer[...] = out
    return buffer


def _memo(self: Saboteur, call: dict[str, Any], out: Array) -> Array:
    return self.memory.setdefault(out.shape, out)


def _alternate(self: Saboteur, call: dict[str, Any], out: Array) -> Array:
    self.memory["n"] = self.memory.get("n", 0) + 1
    return _first(out, float(self.memory["n"] % 2))


def _state(self: Saboteur, call: dict[str, Any], out: Array) -> Array:
    np.random.rand()  # noqa: NPY002 - the fault is that the legacy state moves
    return out


def _hoard(self: Saboteur, call: dict[str, Any], out: Array) -> Array:
    self.memory.setdefault("hoard", []).append(np.ones(1 << 17))
    return out


def _accept(self: Saboteur, call: dict[str, Any], out: Array) -> Array:
    return out


class Lenient(Saboteur):
    """Cuts inputs that do not fit, instead of refusing them."""

    @implements("masked_softmax")
    def masked_softmax(self, scores: Array, *, mask: Array | None = None) -> Array:
        if mask is not None and mask.ndim == 3:
            mask = mask[: scores.shape[0], : scores.shape[1], : scores.shape[2]]
        return super().masked_softmax(scores, mask=mask)

    @implements("attention")
    def attention(self, q: Array, k: Array, v: Array, **rest: Any) -> Array:
        batch, keys, width = (
            min(x)
            for x in zip(
                q.shape[::3][:1] + k.shape[2:3] + q.shape[3:],
                v.shape[:1] + v.shape[2:3] + k.shape[3:],
                strict=True,
            )
        )
        heads = max(h for h in range(1, k.shape[1] + 1) if q.shape[1] % h == 0)
        if rest.get("mask") is not None:
            rest["mask"] = rest["mask"][..., : q.shape[2], :keys]
        return super().attention(
            q[:batch, ..., :width],
            k[:batch, :heads, :keys, :width],
            v[:batch, :heads, :keys],
            **rest,
        )


def _transposed(self: Saboteur, call: dict[str, Any], out: Array) -> Array:
    target = call["scores" if "scores" in call else "q"]
    return out if target.flags.c_contiguous else (out * 1.01).astype(out.dtype)


def _flat(self: Saboteur, call: dict[str, Any], out: Array) -> Array:
    return out.reshape(-1)


def _wide_out(self: Saboteur, call: dict[str, Any], out: Array) -> Array:
    return out.astype(np.float64)


def _one_for_none(self: Saboteur, call: dict[str, Any], out: Array) -> Array:
    """One element where there should be none, and NaN where there is no key."""
    if not out.size:
        return np.zeros((1,), out.dtype)
    return np.full(out.shape, np.nan, out.dtype) if 0 in call.get("k", out).shape else out


SABOTEURS: dict[str, Callable[[], Backend]] = {
    **CACHE,
    **LAYERS,
    **GRIDS,
    **SEQUENCES,
    **BLOCKS,
    **WHOLE,
    **TRAINING,
    "softmax.refines": lambda: Saboteur(_times(1.0001)),
    "softmax.vjp_refines": lambda: Saboteur(gradients=_grad_times(1.001)),
    "softmax.blocked_zero": lambda: Saboteur(
        lambda s, c, o: np.where(_blocked(c), np.asarray(1e-30, o.dtype), o)
    ),
    "softmax.row_sum": lambda: Saboteur(_times(0.999)),
    "softmax.blocked_independent": lambda: Saboteur(_leak_blocked),
    "softmax.shift_invariant": lambda: Saboteur(_scores_plus_max),
    "softmax.one_visible": lambda: Saboteur(_times(1 - 2.0**-23)),
    "softmax.all_true_neutral": lambda: Saboteur(_with_mask),
    "softmax.grad_blocked_zero": lambda: Saboteur(gradients=_grad_plus(1e-30, "scores")),
    "softmax.grad_sums_zero": lambda: Saboteur(gradients=_grad_plus(1e-2, "scores")),
    "softmax.online": lambda: Saboteur(_leading),
    "attention.refines": lambda: Saboteur(_times(1.001)),
    "attention.vjp_refines": lambda: Saboteur(gradients=_grad_times(1.01)),
    "attention.scale": lambda: Saboteur(_no_scale),
    "attention.empty_row": lambda: Saboteur(_empty_rows(np.nan)),
    "attention.convex": lambda: Saboteur(_times(1.001)),
    "attention.grad_blocked_zero": lambda: Saboteur(gradients=_grad_plus(1e-30, "k")),
    "attention.value_mass": lambda: Saboteur(gradients=_grad_times(1.01)),
    "attention.gqa_map": lambda: Saboteur(_heads),
    "attention.blocked_nonfinite": lambda: Saboteur(_poison),
    "attention.allowed_nonfinite": lambda: Saboteur(_swallow),
    "attention.future_zero": lambda: Saboteur(_leak_blocked),
    "attention.blocked_independent": lambda: Saboteur(_weight_by_place),
    "attention.prefix": lambda: Saboteur(_rows_far),
    "attention.offset": lambda: Saboteur(_rows_far),
    "attention.batch_invariant": lambda: Saboteur(_batch),
    "attention.head_equivariant": lambda: Saboteur(_ramp(1)),
    "attention.token_equivariant": lambda: Saboteur(_ramp(2)),
    "attention.key_permutation": lambda: Saboteur(_weight_by_place),
    "attention.linear_in_v": lambda: Saboteur(_nonlinear),
    "attention.tile_independent": lambda: Saboteur(_keys_far),
    "attention.mode_agreement": lambda: Saboteur(_mode, modes=("fast", "slow")),
    "hygiene.shape": lambda: Saboteur(_flat),
    "hygiene.dtype": lambda: Saboteur(_wide_out),
    "hygiene.layout_independent": lambda: Saboteur(_transposed),
    "hygiene.inputs_unchanged": lambda: Saboteur(_overwrite),
    "hygiene.guard_zones": lambda: Saboteur(_beyond),
    "hygiene.fresh_output": lambda: Saboteur(_stale),
    "hygiene.deterministic": lambda: Saboteur(_alternate),
    "hygiene.call_order_independent": lambda: Saboteur(_memo),
    "hygiene.global_state_unchanged": lambda: Saboteur(_state),
    "hygiene.invalid_input_rejected": Lenient,
    "hygiene.zero_size": lambda: Saboteur(_one_for_none),
    "hygiene.memory_bounded": lambda: Saboteur(_hoard),
    "hygiene.provider_witness": lambda: Saboteur(witness=("a kernel that does not exist",)),
}
