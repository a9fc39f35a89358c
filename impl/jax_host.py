"""JAX's part of running a call: arrays on a device, the width of numbers, global state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from assay.impl.host import numpy_state

_SETTINGS = (
    "jax_enable_x64",
    "jax_default_matmul_precision",
    "jax_numpy_dtype_promotion",
    "jax_numpy_rank_promotion",
    "jax_debug_nans",
    "jax_disable_jit",
    "jax_default_prng_impl",
)


class JaxHost:
    """Arrays on ``device``, copied there: JAX writes into none of them.

    JAX makes 32-bit numbers of 64-bit ones unless it is told not to; a call runs with 64-bit
    numbers if and only if one of its float inputs is wide, as users of float64 would have it.
    """

    kind = "jax.Array"

    def __init__(self, device: str) -> None:
        self.device = device
        self.wide = False
        if not self.unavailable():
            # The first array starts the threads of the device, before memory is limited.
            jax.device_put(np.zeros(1, np.float32), self._place()).block_until_ready()

    def _place(self) -> Any:
        kind, _, index = self.device.partition(":")
        return jax.devices(kind)[int(index or 0)]

    def wrap(
        self, block: np.ndarray, views: Mapping[str, np.ndarray], differentiable: bool
    ) -> dict[str, Any]:
        """Copies of ``views``; integers are narrow where the floats are."""
        self.wide = any(view.dtype == np.float64 for view in views.values())
        with jax.enable_x64(self.wide):
            return {
                name: jax.device_put(np.array(view, order="C"), self._place())
                for name, view in views.items()
            }

    def fetch_block(self) -> np.ndarray | None:
        """None: the block was copied, so nothing can be written into it."""
        return None

    def owns(self, value: Any) -> bool:
        """Any array that holds values."""
        return isinstance(value, jax.Array) and not isinstance(value, Tracer)

    def copy(self, native: Any) -> np.ndarray:
        """A row-major copy."""
        return np.array(native, order="C")

    def span(self, native: Any) -> tuple[int, int]:
        """Address range of the elements."""
        if native.size == 0:
            return (0, 0)
        start = native.unsafe_buffer_pointer()
        return (start, start + native.nbytes)

    def base(self) -> int:
        """0: no array of JAX lies in the block."""
        return 0

    def describe(self, native: Any) -> tuple[str, str]:
        """Dtype and platform ("float32", "cpu")."""
        platform = next(iter(native.devices())).platform
        return native.dtype.name, "cuda" if platform == "gpu" else platform

    def state(self) -> dict[str, Any]:
        """numpy's state, and JAX's settings."""
        settings = {name: getattr(jax.config, name) for name in _SETTINGS}
        return {**numpy_state(), **settings}

    @contextmanager
    def context(self) -> Iterator[None]:
        """64-bit numbers as the call's inputs ask for, and the device as the default."""
        with (
            np.errstate(all="ignore"),
            jax.enable_x64(self.wide),
            jax.default_device(self._place()),
        ):
            yield

    def unavailable(self) -> str:
        """Why arrays cannot be put on the device."""
        return _unavailable(self.device)

    def gradients(
        self, outputs: Mapping[str, Any], inputs: Mapping[str, Any], cotangents: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Never asked for: JaxBackend differentiates the method itself."""
        raise NotImplementedError("gradients need the function, and outputs do not hold it")

    def synchronize(self) -> None:
        """Outputs are read at once, which waits for them."""

    def watch_kernels(self) -> AbstractContextManager[Sequence[str]]:
        """JAX compiles kernels of its own and names none."""
        return nullcontext([])

    def out_of_memory(self, error: BaseException) -> bool:
        """XLA's allocators name the status."""
        return "RESOURCE_EXHAUSTED" in str(error) or isinstance(error, MemoryError)

    def versions(self) -> dict[str, str]:
        """Those of JAX and numpy."""
        return {"jax": jax.__version__, "numpy": np.__version__}


@cache
def _unavailable(device: str) -> str:
    kind, _, index = device.partition(":")
    try:
        found = jax.devices(kind)
    except RuntimeError as error:
        return f"device {device!r} is not available: {str(error).splitlines()[0]}"
    if index and not (index.isdigit() and int(index) < len(found)):
        return f"device {device!r} is not available: JAX has {len(found)} of that kind"
    return ""
