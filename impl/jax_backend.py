"""Adapter base for functions on JAX arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import jax

from assay.impl.host import Host
from assay.impl.jax_host import JaxHost
from assay.impl.jax_leaves import is_leaf, still
from assay.impl.protocol import Backend, Operation
from assay.impl.signatures import signature


class JaxBackend(Backend):
    """Methods take and return JAX arrays on the contract's device; ``jax.vjp`` of the method gives
    the gradients, unless one is marked with ``implements_vjp``.

    Calls come in many shapes, and JAX compiles each primitive, and each jitted function, anew for
    every one: inputs that are padded to a few sizes keep a campaign short.
    """

    host_name = "jax"

    @cached_property
    def _host(self) -> JaxHost:
        return JaxHost(self.contract.device)

    def host(self) -> Host:
        """The JAX host, on the contract's device."""
        return self._host

    @cached_property
    def _derivatives(self) -> dict[str, Operation]:
        if not self.contract.gradients:
            return {}
        derived = {op: Operation(self._derivative(op), None) for op in self.operations()}
        return {**derived, **self._marked("__assay_implements_vjp__")}

    def _derivative(self, op: str) -> Callable[..., dict[str, Any]]:
        """The gradient of the op's method, called as ``implements_vjp`` says."""
        forward, names = self.operations()[op], signature(op)

        def gradient(*inputs: Any, **given: Any) -> dict[str, Any]:
            slopes = {n: given.pop(key) for n, key in names.cotangents.items() if key in given}
            arrays = dict(zip(names.inputs, inputs, strict=True))
            arrays |= {n: given.pop(n) for n in tuple(given) if isinstance(given[n], jax.Array)}

            def run(moving: Mapping[str, Any]) -> Any:
                every = {**arrays, **moving}
                optional = {n: x for n, x in every.items() if n not in names.inputs}
                keywords = forward.spell(op, {**optional, **given})
                return forward.method(*(every[n] for n in names.inputs), **keywords)

            leaves = {n: x for n, x in arrays.items() if is_leaf(n, x)}
            return self.pull(run, leaves, slopes, names.outputs)

        return gradient

    def pull(
        self,
        run: Callable[[Mapping[str, Any]], Any],
        leaves: Mapping[str, Any],
        slopes: Mapping[str, Any],
        names: tuple[str, ...],
    ) -> dict[str, Any]:
        """Gradients of sum(output * slope) into ``leaves``; ``run`` gives the outputs, by
        ``names``.
        """
        outputs, back = jax.vjp(run, dict(leaves))
        if len(names) == 1:
            return dict(back(slopes[names[0]])[0])
        flow = (slopes.get(n, still(y)) for n, y in zip(names, outputs, strict=True))
        return dict(back(tuple(flow))[0])
