"""The gradient of a bfloat16 convolution into a tap that sees padding alone is old memory.

Seen with torch 2.13.0 (oneDNN) on a CPU with AVX-512, with and without bfloat16 instructions.
"""

import torch
from torch.nn.functional import conv1d

x = torch.zeros(1, 16, 2, dtype=torch.bfloat16)
weight = torch.ones(16, 16, 4, dtype=torch.bfloat16, requires_grad=True)

for _ in range(100):
    # Memory that was used and given back, as there is in any program.
    used = [torch.full((size,), float("nan")) for size in (64, 256, 512, 1024, 2048, 4096)]
    del used
    # One window over x[-2], x[-1], x[0], x[1]: taps 0 and 1 see padding, and all inputs are 0.
    out = conv1d(x, weight, stride=4, padding=2)
    (got,) = torch.autograd.grad(out.sum(), weight)
    wrong = got[got != 0].tolist()
    assert not wrong, f"{len(wrong)} of {got.numel()} gradients are like {wrong[0]}, should be 0"
