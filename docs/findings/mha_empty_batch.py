"""nn.MultiheadAttention, and the transformer layers made of it, refuse an empty batch that comes
with a key_padding_mask.

Seen with torch 2.13.0 on a CPU. Without the mask an empty batch gives an empty output.
"""

import torch

module = torch.nn.MultiheadAttention(4, 2, batch_first=True)
x = torch.zeros(0, 3, 4)
mask = torch.zeros(0, 3, dtype=torch.bool)
try:
    shape = tuple(module(x, x, x, key_padding_mask=mask, need_weights=False)[0].shape)
except RuntimeError as error:
    shape = f"{type(error).__name__}: {error}"
assert shape == (0, 3, 4), f"an empty batch with a mask gives {shape}, should be (0, 3, 4)"
