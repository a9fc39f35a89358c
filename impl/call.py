"""One call of a backend and what came back: the only things that cross the boundary to a worker."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

LayoutKind = Literal["contiguous", "transposed", "strided", "offset", "expanded"]
LAYOUTS: tuple[LayoutKind, ...] = ("contiguous", "transposed", "strided", "offset", "expanded")

FailureKind = Literal["unsupported", "raised", "adapter", "memory", "crashed", "hung"]


@dataclass(frozen=True)
class Layout:
    """How one input lies in memory; the values are the same in all of them.

    contiguous  row-major
    transposed  the last two axes swapped in memory
    strided     every second element of the last axis of a wider buffer
    offset      row-major, starting ``offset`` elements into its buffer
    expanded    stride 0 along axis 0 (the caller makes the rows along that axis equal)
    """

    kind: LayoutKind = "contiguous"
    offset: int = 0


@dataclass(frozen=True)
class Call:
    """One evaluation of an op.

    inputs      arrays by name, in the op's order, already in the dtype under test (masks: bool or
                that dtype)
    attributes  causal, offset, window, scale, ...: only those that differ from the op's default
    cotangents  by output name; when given, gradients of all differentiable inputs are wanted
    mode        one of the contract's modes
    layouts     by input name; missing: contiguous
    witness     also record which kernels ran (slow)
    repeat      run it this many times and return the last (for memory growth)
    """

    op: str
    inputs: Mapping[str, np.ndarray]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    cotangents: Mapping[str, np.ndarray] | None = None
    mode: str = "default"
    layouts: Mapping[str, Layout] = field(default_factory=dict)
    witness: bool = False
    repeat: int = 1


@dataclass(frozen=True)
class Failure:
    """Why there is no value. ``type`` is the exception's class name, ``trace`` its traceback (for
    the report).
    """

    kind: FailureKind
    message: str
    type: str = ""
    trace: str = ""


@dataclass(frozen=True)
class Hygiene:
    """What the runner observed around the call. Empty tuples and True mean clean.

    dtypes, devices  of every output and gradient, by name, as the host names them
    changed_inputs   inputs whose bits changed
    broken_guards    inputs around whose buffer something was written
    aliased          (output, input) pairs that share memory
    changed_later    outputs that a later call of the same batch overwrote
    global_state     names of host state that the call left changed
    grown_bytes      resident memory gained over the repeats of the call
    kernels          names of the kernels that ran (only with ``witness``)
    """

    dtypes: Mapping[str, str] = field(default_factory=dict)
    devices: Mapping[str, str] = field(default_factory=dict)
    changed_inputs: tuple[str, ...] = ()
    broken_guards: tuple[str, ...] = ()
    aliased: tuple[tuple[str, str], ...] = ()
    changed_later: tuple[str, ...] = ()
    global_state: tuple[str, ...] = ()
    grown_bytes: int = 0
    kernels: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reply:
    """Outputs and gradients as numpy arrays (copies), or a failure.

    memory  the bytes of the inputs' block after the call, for a session that does not take the
            worker's word for what it left of them; else None
    """

    outputs: Mapping[str, np.ndarray] = field(default_factory=dict)
    gradients: Mapping[str, np.ndarray] = field(default_factory=dict)
    failure: Failure | None = None
    hygiene: Hygiene = field(default_factory=Hygiene)
    seconds: float = 0.0
    memory: np.ndarray | None = None
