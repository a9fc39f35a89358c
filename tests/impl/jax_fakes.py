"""Backends on JAX arrays for the tests: as a user would write them, sound and with faults."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp

from assay.impl import Contract, JaxBackend, implements, implements_vjp


class Sound(JaxBackend):
    contract = Contract(name="sound", accumulate="input")

    @implements("linear")
    def linear(self, x: Any, weight: Any, *, bias: Any = None) -> Any:
        y = x @ weight.T
        return y if bias is None else y + bias

    @implements("embedding")
    def embedding(self, ids: Any, table: Any) -> Any:
        return table[ids]

    @implements("affine_scan")
    def affine_scan(self, a: Any, b: Any, x: Any, *, h0: Any = None) -> Any:
        a = jnp.broadcast_to(a, x.shape)
        v = b * x if h0 is None else (b * x).at[:, 0].add(a[:, 0] * h0)
        return jax.lax.associative_scan(
            lambda f, g: (f[0] * g[0], g[0] * f[1] + g[1]), (a, v), axis=1
        )[1]


class WrongSlope(JaxBackend):
    contract = Contract(name="wrong-slope")

    @implements("linear")
    def linear(self, x: Any, weight: Any) -> Any:
        return jax.lax.stop_gradient(x) @ weight.T


class OwnSlope(Sound):
    contract = Contract(name="own-slope")

    @implements_vjp("linear")
    def linear_vjp(self, x: Any, weight: Any, *, out: Any) -> Any:
        return {"x": out @ weight, "weight": out.reshape(-1, out.shape[-1]).T @ x.reshape(-1, 3)}


class Settings(JaxBackend):
    contract = Contract(name="settings")

    @implements("relu")
    def relu(self, x: Any) -> Any:
        settings: Any = jax.config
        settings.update("jax_debug_nans", True)
        return jax.nn.relu(x)


class NotAnArray(JaxBackend):
    contract = Contract(name="not-an-array")

    @implements("relu")
    def relu(self, x: Any) -> Any:
        return [x]


class Elsewhere(Sound):
    contract = Contract(name="elsewhere", device="cuda:7")


@jax.jit
def doubled(x: Any) -> Any:
    return 2 * jax.nn.relu(x)
