"""A script is played on a decoder step by step, and what it refuses is told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from assay.impl.backends.torch_cache import GrowingDecoder, StaticDecoder
from assay.impl.call import Call
from assay.impl.loading import resolve
from assay.impl.session import open_session
from assay.impl.torch_decoder import Overflow, TorchDecoder, play
from assay.spec.ops import op

SHAPES = {"q": (2, 2, 4, 9, 3), "k": (2, 2, 2, 9, 3), "v": (2, 2, 2, 9, 5)}
SCRIPTS: list[dict[str, Any]] = [
    {},
    {"script": ("append 4", "append 1", "append 4"), "capacity": 9},
    {
        "script": ("append 3", "overflow 3", "reorder 1 1", "append 2", "reset", "append 1"),
        "capacity": 5,
        "pads": (1, 2),
    },
    {"script": ("append 3", "append 1", "reorder 1 0", "append 5"), "capacity": 3, "rolling": True},
]


def stream() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    return {n: rng.normal(size=shape) for n, shape in SHAPES.items()}


@pytest.mark.parametrize("attributes", SCRIPTS, ids=range(len(SCRIPTS)))
@pytest.mark.parametrize("name", ["torch.cache.static", "torch.cache.growing"])
def test_a_session_is_the_spec_s(name: str, attributes: dict[str, Any]) -> None:
    x, want = stream(), op("kv_cache").forward(stream(), attributes)
    with open_session(resolve(name), isolate=False) as session:
        modes = session.description.contract.modes
        replies = session.run([Call("kv_cache", x, attributes, mode=mode) for mode in modes])
    for reply in replies:
        assert reply.failure is None
        for output, value in want.items():
            np.testing.assert_allclose(reply.outputs[output], value, rtol=1e-12, atol=1e-14)


def decoders(k: torch.Tensor, v: torch.Tensor) -> list[TorchDecoder]:
    return [StaticDecoder(k, v, 4), GrowingDecoder(k, v, limit=4)]


@pytest.mark.parametrize("kind", [0, 1], ids=["static", "growing"])
def test_a_decoder_says_what_does_not_fit_and_stays_as_it_was(kind: int) -> None:
    q, k, v = (torch.tensor(x) for x in stream().values())
    decoder = decoders(k, v)[kind]
    decoder.append(q[:, :, :, :3], k[:, :, :, :3], v[:, :, :, :3])
    before = [x.clone() for x in decoder.held()]

    with pytest.raises(Overflow, match=r"5 tokens .* 4"):
        decoder.append(q[:, :, :, 3:5], k[:, :, :, 3:5], v[:, :, :, 3:5])

    assert decoder.length() == 3
    assert all(torch.equal(a, b) for a, b in zip(before, decoder.held(), strict=True))


def test_a_decoder_that_refuses_nothing_is_told_apart() -> None:
    q, k, v = (torch.tensor(x) for x in stream().values())
    decoder = GrowingDecoder(k, v)
    *_, refused = play(decoder, q, k, v, script=("append 4", "overflow 5"), capacity=4)
    assert refused.tolist() == [0, 0]


def test_a_script_takes_the_whole_stream() -> None:
    q, k, v = (torch.tensor(x) for x in stream().values())
    with pytest.raises(ValueError, match="script takes 4 tokens of q"):
        play(GrowingDecoder(k, v), q, k, v, script=("append 4",))
