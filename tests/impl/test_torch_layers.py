"""What torch's layers do that their adapters stay clear of: when it is mended, so are they."""

from __future__ import annotations

import pytest
import torch
from torch.nn.functional import group_norm

from assay.impl import Unsupported
from assay.impl.backends.torch_dropout import TorchDropout
from assay.impl.backends.torch_layers import TorchLayers


def test_torch_has_no_gradient_for_the_bias_of_a_group_norm_without_a_weight() -> None:
    x, bias = torch.ones(1, 1, 2), torch.zeros(1, requires_grad=True)
    with pytest.raises(RuntimeError, match="does not have a device"):
        group_norm(x, 1, None, bias).sum().backward()
    with pytest.raises(Unsupported, match="bias without a weight"):
        TorchLayers().group_norm(x, bias=bias)


def test_torch_refuses_single_values_of_group_and_batch_norm() -> None:
    x = torch.ones(1, 2, 1)
    with pytest.raises(Unsupported, match="one value"):
        TorchLayers().group_norm(x, groups=2)
    with pytest.raises(Unsupported, match="one value"):
        TorchLayers().batch_norm(x)


@pytest.mark.parametrize("mode", ["grad", "module.grad"])
@pytest.mark.parametrize("p", [0.25, 1.0])
def test_dropout_uses_the_given_mask(mode: str, p: float) -> None:
    backend = TorchDropout()
    backend.mode = mode
    keep = torch.tensor([True, False, True, False])
    x = torch.ones(4, requires_grad=True)
    y = backend.dropout(x, keep, p=p)
    y.sum().backward()
    due = (keep / (1 - p)).tolist() if p < 1 else [0.0] * 4
    assert y.tolist() == pytest.approx(due)
    assert x.grad is not None
    assert x.grad.tolist() == pytest.approx(due)
