"""layer_norm over one feature is not its bias, and its weight gets a gradient.

Seen with torch 2.13.0 on a CPU: the gradient in float32, the output in bfloat16 and float16. The
kernels compute x * rate - mean * rate, which cancels to rounding errors of the two products.
"""

import torch
from torch.nn.functional import layer_norm

wrong = []
# One feature is its own mean: x - mean = 0, so the output is 0 and so is its slope by the weight.
weight = torch.ones(1, requires_grad=True)
layer_norm(torch.tensor([[1e6]]), (1,), weight).sum().backward()
if weight.grad.item() != 0:
    wrong.append(f"dweight = {weight.grad.item()} at x = 1e6 in float32")
for dtype in (torch.bfloat16, torch.float16):
    out = layer_norm(torch.tensor([[1000.0]], dtype=dtype), (1,)).item()
    if out != 0:
        wrong.append(f"out = {out} at x = 1000 in {dtype}")
assert not wrong, f"{'; '.join(wrong)}; should be 0"
