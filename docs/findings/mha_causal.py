"""nn.MultiheadAttention drops is_causal=True in eval and no_grad when no mask is given.

Seen with torch 2.13.0 on a CPU. With gradients the same call raises instead.
"""

import torch

torch.manual_seed(0)
module = torch.nn.MultiheadAttention(4, 2, batch_first=True).eval()
x = torch.randn(1, 2, 4)
other = x.clone()
other[0, 1] += 1.0  # Only the second token differs.

with torch.no_grad():
    first = module(x, x, x, is_causal=True, need_weights=False)[0][0, 0].tolist()
    again = module(other, other, other, is_causal=True, need_weights=False)[0][0, 0].tolist()
# The first query may see the first token alone.
assert first == again, f"row 0 moves from {first} to {again}, should stay"
