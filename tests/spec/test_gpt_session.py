"""A decoding session of the course GPT: its cache changes nothing, what cannot be is refused."""

from __future__ import annotations

import numpy as np
import pytest

from assay.spec.models.gpt import GPTConfig
from assay.spec.models.networks.gpt_session import play, replay
from tests.spec.model_agreement import draw_params

CONFIG = GPTConfig(vocabulary=5, context=6, layers=2, heads=2, width=4)
PARAMS = draw_params("gpt", CONFIG, 1)
SCRIPTS = [
    (),
    ("append 2", "append 1", "append 3"),
    ("append 3", "reorder 1 1", "append 1", "reorder 1 0", "append 2"),
    ("append 4", "overflow 3", "append 2"),
    ("append 5", "reset", "append 2", "reorder 0 0", "append 1"),
]


@pytest.mark.parametrize("script", SCRIPTS, ids=range(len(SCRIPTS)))
@pytest.mark.parametrize("pads", [(), (2, 0), (1, 7)], ids=str)
def test_a_session_gives_the_logits_of_the_whole_model_on_the_past_of_each_row(
    script: tuple[str, ...], pads: tuple[int, ...]
) -> None:
    tokens = sum(int(w[7:]) for w in script if w.startswith("append")) or 4
    tokens += sum(int(w[9:]) for w in script if w.startswith("overflow"))
    ids = np.random.default_rng(2).integers(0, 5, (2, tokens))
    found = play(CONFIG, PARAMS, ids, script=script, pads=pads)
    want = replay(CONFIG, PARAMS, ids, script=script, pads=pads)
    assert np.abs(found.out - want).max() < 1e-12


def test_lengths_and_refusals_are_those_of_the_script() -> None:
    ids = np.zeros((1, 9), dtype=int)
    script = ("append 4", "overflow 3", "append 2", "reset")
    found = play(CONFIG, PARAMS, ids, script=script)
    assert found.lengths.tolist() == [4, 4, 6, 0]
    assert found.refused.tolist() == [0, 1, 0, 0]
    assert not found.out[:, 4:7].any()


def test_what_is_no_session_is_refused() -> None:
    ids = np.zeros((2, 3), dtype=int)
    with pytest.raises(ValueError, match=r"pads=\(1,\) must have one number for each of 2 rows"):
        play(CONFIG, PARAMS, ids, pads=(1,))
    with pytest.raises(ValueError, match="overflow of tokens=3 fits"):
        play(CONFIG, PARAMS, ids, script=("overflow 3",))
    with pytest.raises(ValueError, match="exceeds context=6"):
        play(CONFIG, PARAMS, np.zeros((1, 7), dtype=int))
