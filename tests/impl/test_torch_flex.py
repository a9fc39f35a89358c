"""FlexAttention: masks and rules become functions of positions that say the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from assay.impl.backends.torch_flex import TorchFlex, position_rule
from assay.impl.backends.torch_masks import position_mask
from assay.impl.call import Call
from assay.impl.runner import execute
from assay.spec.attention import attention


@pytest.fixture(scope="module")
def backend() -> TorchFlex:
    return TorchFlex()


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("offset", [0, 2])
@pytest.mark.parametrize("window", [None, (1, 0), (2, None), (None, 1), (0, 0)])
def test_a_rule_of_positions_is_the_mask_of_the_same_rule(
    causal: bool, offset: int, window: Any
) -> None:
    rule = position_rule(causal, offset, window)
    where = torch.device("cpu")
    mask = position_mask(5, 7, causal=causal, offset=offset, window=window, device=where)
    if mask is None:
        assert rule is None
        return
    assert rule is not None
    zero = torch.tensor(0)
    rows = [[bool(rule(zero, zero, torch.tensor(i), torch.tensor(j))) for j in range(7)]
            for i in range(5)]  # fmt: skip
    assert rows == mask.tolist()


@pytest.mark.parametrize(
    ("attributes", "kind"),
    [
        ({}, ""),
        ({"causal": True, "offset": 3}, ""),
        ({"window": (2, 1), "scale": -0.5}, "bool"),
        ({"causal": True, "offset": 3}, "additive"),
    ],
)
def test_outputs_are_the_specs_with_grouped_heads(
    backend: TorchFlex, attributes: dict[str, Any], kind: str
) -> None:
    rng = np.random.default_rng(0)
    shapes = {"q": (2, 4, 5, 8), "k": (2, 2, 8, 8), "v": (2, 2, 8, 6)}
    inputs: dict[str, Any] = {n: rng.standard_normal(s) for n, s in shapes.items()}
    seen = rng.random((2, 1, 5, 8)) < 0.7
    if kind:
        inputs["mask"] = seen if kind == "bool" else np.where(seen, 0.25, -np.inf)
    (reply,) = execute(backend, [Call("attention", inputs, attributes, mode="no_grad")])

    assert reply.failure is None, reply.failure
    assert reply.outputs["out"] == pytest.approx(attention(**inputs, **attributes), abs=1e-12)


def test_gradients_are_not_offered(backend: TorchFlex) -> None:
    assert not backend.differentiates("attention")
