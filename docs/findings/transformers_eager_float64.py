"""Eager attention in float64 gives NaN to a row whose mask blocks every key.

Seen with transformers 5.24.0. The mask holds the least finite number of the queries' format, so
that such a row gets the mean of all values, as in float32. The softmax turns the scores into
float32, whatever their format, and there the least number of float64 is -inf.
"""

import torch
from transformers.masking_utils import eager_mask
from transformers.models.llama.modeling_llama import eager_attention_forward

for dtype in (torch.float32, torch.float64):
    layer = torch.nn.Module()
    layer.num_key_value_groups = 1
    padding = torch.tensor([[False, False]])  # both tokens are padding
    mask = eager_mask(1, 2, 2, attention_mask=padding, dtype=dtype)
    q = torch.zeros(1, 1, 2, 1, dtype=dtype)
    v = torch.tensor([1.0, 3.0], dtype=dtype).reshape(1, 1, 2, 1)
    out, _ = eager_attention_forward(layer, q, q, v, mask, scaling=1.0)
    got = out[0, 0, 0].item()
    assert got == 2.0, f"a row without keys is {got!r} in {dtype}, should be 2.0 as in float32"
