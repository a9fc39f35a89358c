"""A wrong backend for each property of decoding with a cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from assay.spec.decoding import Step, pasts, recompute, steps
from tests.properties.spec_backend import Arrays, SpecBackend, Spoil, scaled

Change = Callable[[dict[str, Any], Arrays], Arrays]


def _backend(change: Change) -> Callable[[], SpecBackend]:
    """``change`` gives the outputs that are other than what is due."""

    def spoil(backend: SpecBackend, name: str, call: dict[str, Any], right: Arrays) -> Arrays:
        with np.errstate(all="ignore"):
            found = change(call, right)
        return {n: np.asarray(found.get(n, x), x.dtype) for n, x in right.items()}

    return lambda: SpecBackend("kv_cache", spoil=spoil)


def _steps(call: dict[str, Any]) -> tuple[Step, ...]:
    return steps(call.get("script", ()), call["k"].shape[3])


def _stream(call: dict[str, Any]) -> dict[str, Any]:
    return {n: call[n].astype(np.float64) for n in ("q", "k", "v")}


def _by_chunks(call: dict[str, Any], right: Arrays) -> Arrays:
    """A little more with each chunk."""
    out = right["out"].copy()
    for past in pasts(call.get("script", ()), out.shape[1], out.shape[3]):
        factor = 1 + 0.02 * (past.step.start > 0)
        out[:, :, :, past.place] = out[:, :, :, past.place] * np.asarray(factor, out.dtype)
    return {"out": out}


def _drifting(call: dict[str, Any], right: Arrays) -> Arrays:
    """Every append rewrites the first slot."""
    keys, chunks = right["keys"].copy(), 0
    for index, step in enumerate(_steps(call)):
        chunks += step.action == "append"
        keys[index, ..., :1, :] += np.asarray(chunks, keys.dtype)
    return {"keys": keys}


def _one_slot_late(call: dict[str, Any], right: Arrays) -> Arrays:
    return {n: np.roll(right[n], 1, axis=4) + np.asarray(1, right[n].dtype) for n in ("values",)}


def _by_layer(call: dict[str, Any], right: Arrays) -> Arrays:
    """Each layer advances the length."""
    return {"lengths": right["lengths"] * call["k"].shape[0]}


def _from_zero(call: dict[str, Any], right: Arrays) -> Arrays:
    """Positions of each chunk start at 0."""
    places = right["positions"].copy()
    for past in pasts(call.get("script", ()), places.shape[0], places.shape[1]):
        places[:, past.place] = np.arange(past.step.tokens)
    return {"positions": places}


def _accepts(call: dict[str, Any], right: Arrays) -> Arrays:
    return {"refused": 0 * right["refused"]}


def _keys_stay(call: dict[str, Any], right: Arrays) -> Arrays:
    """The last layer is not reordered."""
    keys = right["keys"].copy()
    for index, step in enumerate(_steps(call)):
        if index and step.action == "reorder":
            keys[index, -1] = keys[index - 1, -1]
    return {"keys": keys}


def _padding_blind(call: dict[str, Any], right: Arrays) -> Arrays:
    """A padding query sees nothing: 0 / 0."""
    out = right["out"].copy()
    for row, pad in enumerate(call.get("pads", ())):
        out[:, row, :, :pad] = np.nan
    return {"out": out}


def _one_too_many(call: dict[str, Any], right: Arrays) -> Arrays:
    given = {n: call[n] for n in ("script", "rolling") if n in call}
    return {"out": recompute(**_stream(call), **given, capacity=call["capacity"] + 1)}


def _stale(call: dict[str, Any], right: Arrays) -> Arrays:
    """What was held before a reset is still seen."""
    script = tuple(line for line in call.get("script", ()) if line != "reset")
    pads = call.get("pads", ())
    return {"out": recompute(**_stream(call), script=script, pads=pads)}


def _scaled(factor: float) -> Spoil:
    return scaled(factor, "out")


CACHE: dict[str, Callable[[], SpecBackend]] = {
    "cache.decode_equals_full": lambda: SpecBackend("kv_cache", spoil=_scaled(1.01)),
    "cache.chunk_split": _backend(_by_chunks),
    "cache.earlier_slots_kept": _backend(_drifting),
    "cache.append_last": _backend(_one_slot_late),
    "cache.length_once": _backend(_by_layer),
    "cache.position": _backend(_from_zero),
    "cache.capacity": _backend(_accepts),
    "cache.reorder": _backend(_keys_stay),
    "cache.left_pad": _backend(_padding_blind),
    "cache.rolling_window": _backend(_one_too_many),
    "cache.reset": _backend(_stale),
}
