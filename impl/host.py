"""What the runner asks of an array library, and numpy's answer (see ``torch_host`` for torch's)."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, Protocol

import numpy as np
from numpy.random import mtrand


class AdapterError(Exception):
    """The adapter gave back something that is no array of its host, or cannot be read as one."""


class Host(Protocol):
    """One array library. Natives are its arrays."""

    kind: str

    def wrap(
        self, block: np.ndarray, views: Mapping[str, np.ndarray], differentiable: bool
    ) -> dict[str, Any]:
        """Natives over ``views``, which lie in ``block``; on another device the block is moved as a
        whole.
        """
        ...

    def fetch_block(self) -> np.ndarray | None:
        """The block of the last ``wrap`` as it is now, where it was moved to another device; else
        None.
        """
        ...

    def owns(self, value: Any) -> bool:
        """Whether ``value`` is one of this library's arrays."""
        ...

    def copy(self, native: Any) -> np.ndarray:
        """Its values, as a numpy array of its own. AdapterError: it has none that numpy could
        hold.
        """
        ...

    def span(self, native: Any) -> tuple[int, int]:
        """First and one past the last byte address of its elements; (0, 0) when it has none."""
        ...

    def base(self) -> int:
        """Address of the first byte of the block of the last ``wrap``."""
        ...

    def describe(self, native: Any) -> tuple[str, str]:
        """Names of its dtype and device."""
        ...

    def state(self) -> dict[str, Any]:
        """Global state that a call must leave as it is; values compare with ``==``."""
        ...

    def context(self) -> AbstractContextManager[Any]:
        """In which the call runs, and its global state is read."""
        ...

    def unavailable(self) -> str:
        """Why nothing can run on the device; "" when it can."""
        ...

    def gradients(
        self, outputs: Mapping[str, Any], inputs: Mapping[str, Any], cotangents: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Gradients of sum(output * cotangent) into each differentiable input."""
        ...

    def synchronize(self) -> None:
        """Wait until all work given to the device is done."""
        ...

    def watch_kernels(self) -> AbstractContextManager[Sequence[str]]:
        """Fills a list with the names of the kernels that ran within it."""
        ...

    def out_of_memory(self, error: BaseException) -> bool:
        """Whether ``error`` says that memory ran out."""
        ...

    def versions(self) -> dict[str, str]:
        """Versions that results depend on."""
        ...


class NumpyHost:
    """numpy arrays in the memory of this process."""

    kind = "numpy.ndarray"

    def __init__(self) -> None:
        self._base = 0

    def wrap(
        self, block: np.ndarray, views: Mapping[str, np.ndarray], differentiable: bool
    ) -> dict[str, Any]:
        """The views themselves."""
        # The address alone: whoever holds the block keeps the next one from its place.
        self._base = block.__array_interface__["data"][0]
        for size in {view.nbytes for view in views.values()}:
            _poison_cache(size)
        return dict(views)

    def fetch_block(self) -> np.ndarray | None:
        """None: the block is shared with the calls."""
        return None

    def owns(self, value: Any) -> bool:
        """Arrays, not scalars: an op never has a scalar output."""
        return isinstance(value, np.ndarray)

    def copy(self, native: Any) -> np.ndarray:
        """A row-major copy."""
        if native.dtype.hasobject:
            raise AdapterError(
                f"the adapter returned an array of dtype {native.dtype}; it must hold numbers"
            )
        return np.array(native, order="C")

    def span(self, native: Any) -> tuple[int, int]:
        """Address range of the elements."""
        if native.size == 0:
            return (0, 0)
        start: int = native.__array_interface__["data"][0]
        if native.flags.c_contiguous:
            return (start, start + native.nbytes)
        low, high = np.lib.array_utils.byte_bounds(native)
        return (int(low), int(high))

    def base(self) -> int:
        """Address of the block."""
        return self._base

    def describe(self, native: Any) -> tuple[str, str]:
        """numpy has one device."""
        return _dtype_name(native.dtype), "cpu"

    def state(self) -> dict[str, Any]:
        """Legacy random state and floating-point error handling."""
        return numpy_state()

    def context(self) -> AbstractContextManager[Any]:
        """Overflow and NaN are judged, not warned of."""
        return np.errstate(all="ignore")

    def unavailable(self) -> str:
        """numpy is there."""
        return ""

    def gradients(
        self, outputs: Mapping[str, Any], inputs: Mapping[str, Any], cotangents: Mapping[str, Any]
    ) -> dict[str, Any]:
        """numpy has no automatic differentiation."""
        raise NotImplementedError("gradients need a method marked with implements_vjp")

    def synchronize(self) -> None:
        """Calls return when they are done."""

    def watch_kernels(self) -> AbstractContextManager[Sequence[str]]:
        """numpy names no kernels."""
        return nullcontext([])

    def out_of_memory(self, error: BaseException) -> bool:
        """numpy raises a subclass of MemoryError."""
        return isinstance(error, MemoryError)

    def versions(self) -> dict[str, str]:
        """numpy's own."""
        return {"numpy": np.__version__}


@cache
def _dtype_name(dtype: np.dtype[Any]) -> str:
    return dtype.name


def _poison_cache(size: int) -> None:
    """Fill the freed blocks of ``size`` bytes that numpy keeps, so that an output never written
    shows as NaN.

    numpy hands small blocks out again without asking malloc; outputs mostly have the size of an
    input.
    """
    if 0 < size < _CACHED_BYTES:
        blocks = [np.empty(size, np.uint8) for _ in range(_CACHED_BLOCKS)]
        for block in blocks:
            block.fill(0xFF)


_CACHED_BYTES = 1024
_CACHED_BLOCKS = 7
_TWISTER_BYTES = 625 * 4  # 624 words of key and the position
_GENERATOR = mtrand.get_bit_generator().ctypes.state_address


def numpy_state() -> dict[str, Any]:
    """numpy's legacy random state, as bits, and its error handling.

    The state is read through its published address: ``get_state`` costs more than a small call.
    """
    return {
        "numpy random state": ctypes.string_at(_GENERATOR, _TWISTER_BYTES),
        "numpy error handling": np.geterr(),
    }
