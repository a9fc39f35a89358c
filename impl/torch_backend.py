"""Adapter base for kernels on torch tensors."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from assay.impl.contract import Contract
from assay.impl.host import Host
from assay.impl.protocol import Backend
from assay.impl.torch_host import TorchHost

DEFAULT_MODES = ("no_grad", "grad")


class TorchBackend(Backend):
    """Methods take and return tensors on the contract's device; gradients come from autograd.

    A contract that names no modes runs in "no_grad" and "grad". In modes whose name holds "no_grad"
    calls run under ``torch.no_grad``; in all others the float inputs require gradients.
    """

    host_name = "torch"

    @cached_property
    def _host(self) -> TorchHost:
        return TorchHost(self.contract.device)

    def host(self) -> Host:
        """The torch host, on the contract's device."""
        return self._host

    @cached_property
    def _effective_contract(self) -> Contract:
        contract = self.aligned()
        return (
            replace(contract, modes=DEFAULT_MODES) if contract.modes == ("default",) else contract
        )

    def differentiates(self, op: str) -> bool:
        """Every op, unless the contract says that there are no gradients."""
        return self.contract.gradients and op in self.operations() and bool(self.gradient_modes())

    def gradient_modes(self) -> tuple[str, ...]:
        """The modes that record gradients."""
        return tuple(m for m in self.effective_contract().modes if "no_grad" not in m)

    def tracks_gradients(self) -> bool:
        """Whether the current mode records gradients."""
        return self.contract.gradients and "no_grad" not in self.mode
