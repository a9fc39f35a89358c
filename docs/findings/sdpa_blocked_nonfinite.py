"""NaN in a value row that the mask blocks reaches the output of both SDPA kernels.

Seen with torch 2.13.0 on a CPU.
"""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

x = torch.zeros(1, 1, 2, 1)
v = torch.tensor([1.0, float("nan")]).reshape(1, 1, 2, 1)
mask = torch.tensor([[True, False], [True, False]])  # Every query sees key 0 alone.

for kernel in (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION):
    with sdpa_kernel(kernel):
        out = scaled_dot_product_attention(x, x, v, attn_mask=mask)
    # The only visible value is 1, with weight 1.
    got = out.flatten().tolist()
    assert got == [1.0, 1.0], f"{kernel.name}: {got}, should be [1, 1]"
