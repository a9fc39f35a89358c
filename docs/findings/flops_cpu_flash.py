"""FlopCounterMode counts no operations of scaled_dot_product_attention on a CPU.

Seen with torch 2.13.0: the CPU flash kernel has no formula, neither forward nor backward; the math
kernel is counted in full.
"""

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention
from torch.utils.flop_counter import FlopCounterMode

batch, heads, length, width = 2, 3, 5, 7
# Two products of T x D with D x T or T x T with T x D, each once forward and twice backward.
due = 6 * 2 * batch * heads * length * length * width


def counted(kernel: SDPBackend) -> int:
    """Operations of one forward and backward pass."""
    q, k, v = (torch.ones(batch, heads, length, width, requires_grad=True) for _ in range(3))
    with sdpa_kernel(kernel), FlopCounterMode(display=False) as counter:
        scaled_dot_product_attention(q, k, v, is_causal=True).sum().backward()
    return counter.get_total_flops()


assert counted(SDPBackend.MATH) == due
got = counted(SDPBackend.FLASH_ATTENTION)
assert got == due, f"{got} operations are counted, should be {due}"
