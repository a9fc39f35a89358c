"""Adapter base for kernels on numpy arrays."""

from __future__ import annotations

from functools import cached_property

from assay.impl.host import Host, NumpyHost
from assay.impl.protocol import Backend


class NumpyBackend(Backend):
    """Methods take and return numpy arrays; gradients come from methods marked with
    ``implements_vjp``.
    """

    host_name = "numpy"

    @cached_property
    def _host(self) -> NumpyHost:
        return NumpyHost()

    def host(self) -> Host:
        """The numpy host."""
        return self._host
