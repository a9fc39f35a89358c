"""torch.lstm.projected: ``nn.LSTM`` with ``proj_size``, whose projection selects, so that the
module computes an LSTM without one.

The projection must be narrower than the state: one unit more is kept, which the projection drops,
and which no other unit reads.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from assay.impl.backends.torch_recurrent import (
    LSTM_ORDER,
    check_cell,
    check_lengths,
    reversed_rows,
)
from assay.impl.contract import Contract
from assay.impl.protocol import Unsupported, implements
from assay.impl.torch_backend import TorchBackend

IDLE = 0.5
"""Every parameter of the unit that the projection drops."""


class TorchProjected(TorchBackend):
    """Rows that end early are packed; a sequence from its end is turned before and after."""

    contract = Contract(
        name="torch.lstm.projected",
        dtypes=("float32", "float64"),
        provider="ATen",
        block_sizes=(8, 16),
        subnormals=False,
        requires=("torch",),
    )

    @implements("lstm")
    def lstm(
        self,
        x: Tensor,
        weight: Tensor,
        bias: Tensor,
        *,
        h0: Tensor | None = None,
        c0: Tensor | None = None,
        lengths: Tensor | None = None,
        reverse: bool = False,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Outputs [B, T, Hd] and both parts of the last state."""
        check_cell(x, weight, bias, 4, h0=h0, c0=c0)
        check_lengths(lengths, x)
        hidden = weight.shape[1]
        if 0 in x.shape or not hidden:
            raise Unsupported("lstm", "torch refuses inputs without rows, steps or features")
        if lengths is not None and bool((lengths < 1).any()):
            raise Unsupported("lstm", "torch refuses to pack rows without steps")
        zeros = x.new_zeros(x.shape[0], hidden)
        h, c = (zeros if s is None else s for s in (h0, c0))
        start = (h[None].contiguous(), functional.pad(c, (0, 1))[None].contiguous())
        turned = reversed_rows(x, lengths) if reverse else x
        out, last_h, last_c = _module(weight, bias, turned, start, lengths)
        out = reversed_rows(out, lengths) if reverse else out
        return out, last_h[0].clone(), last_c[0, :, :hidden].contiguous()


def _module(
    weight: Tensor,
    bias: Tensor,
    x: Tensor,
    start: tuple[Tensor, Tensor],
    lengths: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor]:
    """The module with these parameters, made on no device."""
    hidden, width = weight.shape[1], x.shape[-1]
    with torch.device("meta"):
        module = nn.LSTM(width, hidden + 1, batch_first=True, proj_size=hidden, dtype=x.dtype)
    order = list(LSTM_ORDER)
    gates = functional.pad(weight[order], (0, 0, 0, 1), value=IDLE).flatten(0, 1)
    biases = functional.pad(bias[order], (0, 1), value=IDLE).flatten()
    parameters = {
        "weight_ih_l0": gates[:, :width],
        "weight_hh_l0": gates[:, width:],
        "bias_ih_l0": biases,
        "bias_hh_l0": torch.zeros_like(biases),
        "weight_hr_l0": torch.eye(hidden, hidden + 1, dtype=x.dtype, device=x.device),
    }
    read: Any = x
    if lengths is not None:
        read = nn.utils.rnn.pack_padded_sequence(
            x, lengths.cpu(), batch_first=True, enforce_sorted=False
        )
    out, (h, c) = torch.func.functional_call(module, parameters, (read, start))
    if lengths is not None:
        out, _ = nn.utils.rnn.pad_packed_sequence(out, batch_first=True, total_length=x.shape[1])
    return out, h, c
