"""A bfloat16 convolution with an odd number of products reads one input beyond its window, times 0.

Seen with torch 2.13.0 (oneDNN) on a CPU with AVX-512, with and without bfloat16 instructions. Where
that input is an infinity or NaN, the output is NaN: 0 times infinity. float32 is right, and so is
float16.
"""

import torch
from torch.nn.functional import conv1d

inf = float("inf")
one = torch.ones(1, 1, 1, dtype=torch.bfloat16)
x = torch.tensor([[[1.0, inf, 2.0]]], dtype=torch.bfloat16)

# With stride 2 the windows are x[0] and x[2]; nothing reads x[1].
got = conv1d(x, one, stride=2).flatten().tolist()
assert got == [1.0, 2.0], f"{got}, should be [1.0, 2.0]"
