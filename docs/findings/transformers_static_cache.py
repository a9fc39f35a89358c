"""StaticCache counts the tokens of a chunk that it refuses, so that no later chunk fits.

Seen with transformers 5.24.0 on a CPU. The count is raised before the chunk is written, and writing
raises; one token would still fit, and is refused as well.
"""

import torch
from transformers import LlamaConfig, StaticCache

config = LlamaConfig(num_hidden_layers=1, num_attention_heads=1, num_key_value_heads=1)
cache = StaticCache(config, max_cache_len=3)


def append(count: int) -> str:
    """What becomes of a chunk of so many tokens."""
    try:
        cache.update(torch.ones(1, 1, count, 2), torch.ones(1, 1, count, 2), 0)
    except (IndexError, RuntimeError, ValueError):
        return "refused"
    return "taken"


steps = [append(count) for count in (2, 2, 1)]
got = (*steps, int(cache.get_seq_length()))
due = ("taken", "refused", "taken", 3)
assert got == due, f"chunks of 2, 2, 1 into 3 slots, and the count: {got}, should be {due}"
