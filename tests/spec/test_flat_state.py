"""A model's state as one vector, and its configuration as a text."""

from __future__ import annotations

import numpy as np
import pytest

from assay.spec.models.catalogue import model
from assay.spec.models.flat import configure, pack, stored_in, unpack
from assay.spec.models.layout import stored
from assay.spec.models.networks.catalogue import NETWORKS
from assay.spec.ops import op


@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_a_state_goes_into_a_vector_and_back_bit_for_bit(name: str) -> None:
    config = configure(name, op(name).attributes[0].default)
    count = sum(int(np.prod(p.shape)) for p in stored_in(name, config))
    state = np.random.default_rng(0).normal(size=count)
    arrays = unpack(name, config, state)
    assert {n: x.shape for n, x in arrays.items()} == {
        p.name: p.shape for p in stored_in(name, config)
    }
    assert (pack(name, config, arrays) == state).all()


@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_every_model_s_default_configuration_is_the_empty_text(name: str) -> None:
    config = configure(name, "")
    assert config == type(config)()
    assert not pack(name, config, {}).any()
    assert pack(name, config, {}).shape == (stored(model(name).layout(config)),)


def test_what_cannot_be_says_why() -> None:
    config = configure("mlp", "")
    with pytest.raises(ValueError, match=r"state has shape \(3,\); valid: \(32,\)"):
        unpack("mlp", config, np.zeros(3))
    with pytest.raises(ValueError, match="config has no field depth; valid: inputs, hidden"):
        configure("mlp", '{"depth": 3}')
    with pytest.raises(ValueError, match="inputs=0 must be a whole number"):
        configure("mlp", '{"inputs": 0}')
