"""torch.scan: scans, state-space blocks and the causal convolution in tensor operations."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from assay.impl.contract import Contract
from assay.impl.protocol import implements
from assay.impl.torch_backend import TorchBackend


def _check(**wanted: tuple[Tensor | None, tuple[int, ...]]) -> None:
    """ValueError for an input of another shape: it might broadcast."""
    for name, (given, shape) in wanted.items():
        if given is not None and tuple(given.shape) != shape:
            raise ValueError(f"{name} has shape {tuple(given.shape)}, should be {shape}")


def loop(a: Tensor, v: Tensor, start: Tensor) -> Tensor:
    """h = a h + v, step by step; a and v [B, T, ...], start [B, ...]."""
    states, h = [], start
    for t in range(v.shape[1]):
        h = a[:, t] * h + v[:, t]
        states.append(h)
    return torch.stack(states, 1)


def tree(a: Tensor, v: Tensor, start: Tensor) -> Tensor:
    """Maps composed with those 1, 2, 4, ... steps before (W. Hillis and G. Steele, 1986)."""
    reach = 1
    while reach < v.shape[1]:
        earlier, later = slice(None, -reach), slice(reach, None)
        v = torch.cat([v[:, :reach], a[:, later] * v[:, earlier] + v[:, later]], 1)
        a = torch.cat([a[:, :reach], a[:, later] * a[:, earlier]], 1)
        reach *= 2
    return a * start[:, None] + v


def matrix(a: Tensor, v: Tensor, start: Tensor) -> Tensor:
    """All products of factors between two steps, times what each step adds."""
    steps = v.shape[1]
    s = torch.arange(steps, device=v.device)
    later = (s[:, None] > s).view(1, steps, steps, *(1,) * (v.ndim - 2))
    # Row t, column s: a_t where s < t, so that the product along t is that of the steps between.
    each = torch.where(later, a[:, :, None].expand(-1, -1, steps, *a.shape[2:]), 1.0)
    between = torch.cumprod(each, 1)
    seen = (s[:, None] >= s).view(later.shape)
    weights = torch.where(seen, between, 0.0)
    whole = torch.cumprod(a, 1)
    return torch.einsum("bts...,bs...->bt...", weights, v) + whole * start[:, None]


def exponents_matrix(z: Tensor, v: Tensor, start: Tensor) -> Tensor:
    """``matrix`` for factors exp(-z): exponents are added up between two steps and never beyond."""
    steps = v.shape[1]
    s = torch.arange(steps, device=v.device)
    later = (s[:, None] > s).view(1, steps, steps, *(1,) * (v.ndim - 2))
    each = torch.where(later, z[:, :, None].expand(-1, -1, steps, *z.shape[2:]), 0.0)
    seen = (s[:, None] >= s).view(later.shape)
    weights = torch.where(seen, torch.exp(-torch.cumsum(each, 1)), 0.0)
    whole = torch.exp(-torch.cumsum(z, 1))
    return torch.einsum("bts...,bs...->bt...", weights, v) + whole * start[:, None]


class TorchScan(TorchBackend):
    """Three ways to scan: step by step, as a tree of maps, and as a matrix of all products between
    two steps. The convolution is a sum of shifted inputs, ``conv1d``, or a product of windows.
    """

    contract = Contract(
        name="torch.scan",
        dtypes=("float32", "float64"),
        provider="ATen",
        block_sizes=(16,),
        modes=("loop.no_grad", "loop.grad", "tree.grad", "matrix.grad"),
        requires=("torch",),
    )

    def _scan(self, a: Tensor, v: Tensor, start: Tensor) -> Tensor:
        if not v.shape[1]:
            return v.clone()
        form = {"loop": loop, "tree": tree, "matrix": matrix}[self.mode.partition(".")[0]]
        return form(a, v, start)

    def _decay(self, z: Tensor, v: Tensor, start: Tensor) -> Tensor:
        if self.mode.startswith("matrix") and v.shape[1]:
            return exponents_matrix(z, v, start)
        return self._scan(torch.exp(-z), v, start)

    @implements("affine_scan")
    def affine_scan(self, a: Tensor, b: Tensor, x: Tensor, *, h0: Tensor | None = None) -> Tensor:
        """All states [B, T, E]."""
        _check(h0=(h0, (x.shape[0], x.shape[2])))
        a, b = (torch.broadcast_to(p, x.shape) for p in (a, b))
        return self._scan(a, b * x, _zeros(h0, x[:, :1].sum(1)))

    def _core(
        self, u: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor, h0: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """c h + d u [B, T, E], and the last state."""
        channel = (u.shape[2],)
        _check(
            a=(a, channel), b=(b, channel), c=(c, channel), d=(d, channel),
            h0=(h0, (u.shape[0], u.shape[2])),
        )  # fmt: skip
        start = _zeros(h0, u.sum(1))
        states = self._scan(a.expand(u.shape), b * u, start)
        return c * states + d * u, _last(states, start)

    @implements("diagonal_ssm")
    def diagonal_ssm(
        self,
        x: Tensor,
        a: Tensor,
        b: Tensor,
        c: Tensor,
        d: Tensor,
        in_proj: Tensor,
        readout: Tensor,
        *,
        h0: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Outputs [B, T, O] and the last state."""
        y, state = self._core(x @ in_proj, a, b, c, d, h0)
        return y @ readout, state

    @implements("compact_ssm")
    def compact_ssm(
        self,
        x: Tensor,
        a: Tensor,
        b: Tensor,
        c: Tensor,
        d: Tensor,
        in_proj: Tensor,
        gate_proj: Tensor,
        out_proj: Tensor,
        *,
        h0: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Outputs [B, T, O] and the last state."""
        _check(gate_proj=(gate_proj, tuple(in_proj.shape)))
        y, state = self._core(x @ in_proj, a, b, c, d, h0)
        return (y * torch.sigmoid(x @ gate_proj)) @ out_proj, state

    @implements("causal_conv1d")
    def causal_conv1d(
        self,
        x: Tensor,
        weight: Tensor,
        *,
        bias: Tensor | None = None,
        history: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Outputs [B, T, E] and the inputs that later taps still see."""
        (batch, steps, channels), taps = x.shape, weight.shape[0]
        _check(
            weight=(weight, (taps, channels)), bias=(bias, (channels,)),
            history=(history, (batch, taps - 1, channels)),
        )  # fmt: skip
        past = x.new_zeros(batch, taps - 1, channels) if history is None else history
        seen = torch.cat([past, x], 1)
        return self._taps(seen, weight, bias, steps), seen[:, steps:].clone()

    def _taps(self, seen: Tensor, weight: Tensor, bias: Tensor | None, steps: int) -> Tensor:
        taps, channels = weight.shape
        if self.mode.startswith("tree") and seen.shape[0] and steps and channels:
            kernel = weight.flip(0).T[:, None]
            return functional.conv1d(seen.mT, kernel, bias, groups=channels).mT.contiguous()
        if self.mode.startswith("matrix"):
            windows = seen.unfold(1, taps, 1)[:, :steps]
            y = torch.einsum("btek,ke->bte", windows, weight.flip(0))
        else:
            shifted = (seen[:, taps - 1 - k : taps - 1 - k + steps] for k in range(taps))
            y = sum((w * s for w, s in zip(weight, shifted, strict=True)), start=seen.new_zeros(()))
        return y if bias is None else y + bias

    @implements("selective_scan")
    def selective_scan(
        self,
        u: Tensor,
        delta: Tensor,
        a: Tensor,
        b: Tensor,
        c: Tensor,
        *,
        d: Tensor | None = None,
        h0: Tensor | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Outputs [B, T, E] and the last state [B, E, Ns]."""
        (batch, steps, channels), states = u.shape, a.shape[1]
        mix = (batch, steps, states)
        _check(
            delta=(delta, tuple(u.shape)), a=(a, (channels, states)), b=(b, mix), c=(c, mix),
            d=(d, (channels,)), h0=(h0, (batch, channels, states)),
        )  # fmt: skip
        added = (delta * u)[..., None] * b[:, :, None]
        start = _zeros(h0, added.sum(1))
        h = self._decay(delta[..., None] * a, added, start)
        y = torch.einsum("bten,btn->bte", h, c)
        return y if d is None else y + d * u, _last(h, start)

    @implements("selective_block")
    def selective_block(
        self,
        x: Tensor,
        x_proj: Tensor,
        z_proj: Tensor,
        kernel: Tensor,
        conv_bias: Tensor,
        dt_proj: Tensor,
        dt_bias: Tensor,
        a: Tensor,
        b_proj: Tensor,
        c_proj: Tensor,
        d_skip: Tensor,
        out_proj: Tensor,
        *,
        h0: Tensor | None = None,
        history: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Outputs [B, T, O], the last state and the convolution's history."""
        channels = (x_proj.shape[1],)
        _check(
            z_proj=(z_proj, tuple(x_proj.shape)), dt_bias=(dt_bias, channels),
            dt_proj=(dt_proj, channels * 2), d_skip=(d_skip, channels),
        )  # fmt: skip
        mixed, after = self.causal_conv1d(x @ x_proj, kernel, bias=conv_bias, history=history)
        u = functional.silu(mixed)
        # ``functional.softplus`` is linear from 20 on, which float64 can tell from the logarithm.
        raw = u @ dt_proj + dt_bias
        delta = torch.logaddexp(raw, torch.zeros_like(raw))
        y, state = self.selective_scan(u, delta, a, u @ b_proj, u @ c_proj, d=d_skip, h0=h0)
        return (y * functional.silu(x @ z_proj)) @ out_proj, state, after


def _zeros(given: Tensor | None, like: Tensor) -> Tensor:
    return torch.zeros_like(like) if given is None else given


def _last(states: Tensor, start: Tensor) -> Tensor:
    return (states[:, -1] if states.shape[1] else start).clone()
