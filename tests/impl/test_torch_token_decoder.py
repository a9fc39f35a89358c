"""A script of steps is played on a decoder of tokens, and what it does is shown."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from assay.impl.torch_token_decoder import TorchTokenDecoder, play_tokens


class Counting(TorchTokenDecoder):
    """Its logits are the number of tokens that the row has seen, itself included."""

    def __init__(self, rows: int, context: int) -> None:
        self.seen = torch.zeros(rows)
        self.rows, self.context, self.tokens = rows, context, 0

    def append(self, ids: Tensor) -> Tensor:
        if self.tokens + ids.shape[1] > self.context:
            raise ValueError("full")
        counts = self.seen[:, None] + (ids > 0).cumsum(dim=1)
        self.seen, self.tokens = counts[:, -1], self.tokens + ids.shape[1]
        return counts[..., None].expand(-1, -1, 2)

    def reorder(self, rows: Sequence[int]) -> None:
        self.seen = self.seen[list(rows)]

    def reset(self) -> None:
        self.seen, self.tokens = torch.zeros(self.rows), 0

    def length(self) -> int:
        return self.tokens


def _played(ids: list[list[int]], *script: str, context: int = 4) -> tuple[Tensor, Tensor, Tensor]:
    decoder = Counting(len(ids), context)
    return play_tokens(decoder, torch.tensor(ids), 2, torch.zeros(()), script)


def test_chunks_reorders_and_resets_are_played_in_their_order() -> None:
    out, lengths, refused = _played(
        [[1, 1, 1, 1], [0, 0, 1, 1]], "append 2", "reorder 1 0", "append 1", "reset", "append 1"
    )
    assert out[..., 0].tolist() == [[1, 2, 1, 1], [0, 0, 3, 1]]
    assert lengths.tolist() == [2, 2, 3, 0, 1]
    assert refused.tolist() == [0] * 5


def test_a_refused_chunk_leaves_zeros_and_an_accepted_one_shows() -> None:
    out, lengths, refused = _played([[1] * 6], "append 3", "overflow 2", "append 1")
    assert out[0, :, 0].tolist() == [1, 2, 3, 0, 0, 4]
    assert (lengths.tolist(), refused.tolist()) == ([3, 3, 4], [0, 1, 0])
    _, lengths, refused = _played([[1] * 6], "append 3", "overflow 2", "append 1", context=9)
    assert (lengths.tolist(), refused.tolist()) == ([3, 5, 6], [0, 0, 0])


def test_a_script_that_does_not_fit_the_tokens_is_refused() -> None:
    with pytest.raises(ValueError, match="script takes more than the 2 tokens of ids"):
        _played([[1, 1]], "append 3")
    with pytest.raises(ValueError, match="script takes 1 of the 2 tokens of ids"):
        _played([[1, 1]], "append 1")
