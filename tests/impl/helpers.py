"""Calls and targets that the tests of impl share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from assay.impl.call import Call, Hygiene, Reply
from assay.impl.loading import Target, resolve
from assay.impl.protocol import Unavailable
from assay.impl.session import open_session

FAKES = Path(__file__).with_name("fakes.py")
TORCH_FAKES = Path(__file__).with_name("torch_fakes.py")


def fake(name: str, file: Path = FAKES) -> Target:
    """The target of one fake backend."""
    return resolve(f"{file}:{name}")


def offered(name: str) -> frozenset[str]:
    """The ops of a built-in backend; none where it cannot run."""
    try:
        return frozenset(resolve(name).load().operations())
    except Unavailable:
        return frozenset()


def attention_call(value: float = 1.0, *, dtype: Any = np.float32, **changes: Any) -> Call:
    """A call of attention on arrays of shape [1, 1, 3, 2] that hold ``value``, 2 and 3."""
    q, k, v = (np.full((1, 1, 3, 2), x, dtype) for x in (value, 2.0, 3.0))
    return Call("attention", **{"inputs": {"q": q, "k": k, "v": v}, **changes})


def run_local(name: str, *calls: Call, file: Path = FAKES) -> list[Reply]:
    """Replies of a fake backend run in this process."""
    with open_session(fake(name, file), isolate=False) as session:
        return session.run(calls)


def dirt(hygiene: Hygiene) -> dict[str, Any]:
    """What is not clean, by name."""
    names = ("changed_inputs", "broken_guards", "aliased", "changed_later", "global_state")
    return {name: getattr(hygiene, name) for name in names if getattr(hygiene, name)}
