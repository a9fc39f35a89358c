"""mambapy.*: the scans and the norm of mamba.py."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import torch
from mambapy.mamba import MambaBlock, RMSNorm
from mambapy.pscan import pscan
from torch import Tensor
from torch.func import functional_call
from torch.nn import functional

from assay.impl import Contract, TorchBackend, Unsupported, implements
from assay.impl.backends.shapes import check_selective_scan, check_shapes

DTYPES = ("float32", "float64")
WHO: dict[str, Any] = {"provider": "ATen", "requires": ("mambapy", "torch")}


class MambapyScan(TorchBackend):
    """``pscan``, a tree over a length that is padded to a power of two, or step by step; from 0.

    The last state, which the library keeps to itself, is read by one step more for each of its
    entries: a step of length 0 leaves the state as it is.
    """

    contract = Contract("mambapy.scan", DTYPES, block_sizes=(16,), modes=("tree", "steps"), **WHO)

    @implements("affine_scan")
    def affine_scan(self, a: Tensor, b: Tensor, x: Tensor, *, h0: Tensor | None = None) -> Tensor:
        """All states [B, T, E]; a first state is one step more, in front."""
        if self.mode == "steps":
            raise Unsupported("affine_scan", "the library has it as a tree only")
        check_shapes(h0=(h0, (x.shape[0], x.shape[2])))
        a, b = (torch.broadcast_to(p, x.shape) for p in (a, b))
        before = x[:, :0] if h0 is None else h0[:, None]
        a, x = torch.cat([torch.ones_like(before), a], 1), torch.cat([before, b * x], 1)
        return pscan(a[..., None], x[..., None])[:, before.shape[1] :, :, 0]

    @implements("selective_scan")
    def selective_scan(
        self, u: Tensor, delta: Tensor, a: Tensor, b: Tensor, c: Tensor, *, d: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Outputs [B, T, E] and the last state [B, E, N]."""
        check_selective_scan(u, delta, a, b, c, d)
        block = SimpleNamespace(config=SimpleNamespace(d_inner=a.shape[0], d_state=a.shape[1]))
        scan = MambaBlock.selective_scan if self.mode == "tree" else MambaBlock.selective_scan_seq
        batch, steps, states = c.shape
        u, delta, b = (functional.pad(x, (0, 0, 0, states)) for x in (u, delta, b))
        c = torch.cat([c, torch.eye(states, dtype=c.dtype).expand(batch, -1, -1)], 1)
        y = scan(block, u, delta, -a, b, c, u.new_zeros(()) if d is None else d)
        return y[:, :steps], y[:, steps:].mT


class MambapyNorm(TorchBackend):
    """Its ``RMSNorm``."""

    contract = Contract("mambapy.norm", DTYPES, **WHO)

    @implements("rms_norm")
    def rms_norm(self, x: Tensor, *, weight: Tensor | None = None, eps: float = 1e-5) -> Tensor:
        """The shape of x."""
        check_shapes(weight=(weight, tuple(x.shape[-1:])))
        gain = x.new_ones(x.shape[-1:]) if weight is None else weight
        return functional_call(RMSNorm(x.shape[-1], eps), {"weight": gain}, (x,))
