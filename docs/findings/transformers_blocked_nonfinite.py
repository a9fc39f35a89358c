"""NaN in a value that the causal mask blocks reaches the output, as 0 * NaN, in both of the
attention functions that Llama uses.

Seen with transformers 5.24.0. One writes scores out and adds the mask to them, so that NaN in a
blocked key reaches the output as well; the other is torch's fused attention, which does the same.
"""

from types import SimpleNamespace

import torch
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import eager_mask, sdpa_mask
from transformers.models.llama.modeling_llama import eager_attention_forward

layer = SimpleNamespace(num_key_value_groups=1, training=False)
q, k, v = torch.ones(3, 1, 1, 2, 1)
v[0, 0, 1] = torch.nan
masks = [f(1, 2, 2, allow_is_causal_skip=False) for f in (eager_mask, sdpa_mask)]
functions = (eager_attention_forward, sdpa_attention_forward)
for function, mask in zip(functions, masks, strict=True):
    out, _ = function(layer, q, k, v, mask, scaling=1.0)
    got = out[0, 0, 0, 0].item()
    assert got == 1.0, f"{function.__name__}: row 0 sees key 0 alone; it is {got}, should be 1.0"
