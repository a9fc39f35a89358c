"""Which arrays gradients flow into and out of, in JAX's terms."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def is_leaf(name: str, array: Any) -> bool:
    """Whether a gradient into this input is due: into floats, but not into masks."""
    return name != "mask" and jnp.issubdtype(array.dtype, jnp.floating)


def still(output: Any) -> Any:
    """The cotangent of an output on which nothing depends."""
    if jnp.issubdtype(output.dtype, jnp.floating):
        return jnp.zeros_like(output)
    return np.zeros(output.shape, jax.dtypes.float0)
