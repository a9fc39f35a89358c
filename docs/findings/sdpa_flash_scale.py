"""is_causal=True with a scale of 0 or below is NaN on the flash kernel, and right on the math one.

Seen with torch 2.13.0 on a CPU.
"""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

x = torch.zeros(1, 1, 2, 1)
v = torch.tensor([2.0, 4.0]).reshape(1, 1, 2, 1)

for kernel in (SDPBackend.MATH, SDPBackend.FLASH_ATTENTION):
    for scale in (0.0, -1.0):
        with sdpa_kernel(kernel):
            out = scaled_dot_product_attention(x, x, v, is_causal=True, scale=scale)
        # All scores are 0: query 0 sees the first value, query 1 the mean of both.
        got = out.flatten().tolist()
        assert got == [2.0, 3.0], f"{kernel.name}, scale {scale}: {got}, should be [2, 3]"
