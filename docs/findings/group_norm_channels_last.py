"""group_norm with channels last takes the variance as mean x^2 - mean^2, which cancels.

Seen with torch 2.13.0 on a CPU. The same numbers in the usual layout are normalised well.
"""

import torch
from torch.nn.functional import group_norm

# Mean 4096, deviations -1 and 1, variance 1: exact in float32, and so are their sums.
x = 4096 + torch.tensor([-1.0, 1.0, -1.0, 1.0]).reshape(1, 2, 1, 2)
plain = group_norm(x, 1)[0, 0, 0, 1].item()
assert abs(plain - 1) < 1e-3, plain
got = group_norm(x.contiguous(memory_format=torch.channels_last), 1)[0, 0, 0, 1].item()
# 1 / sqrt(1 + 1e-5) = 0.999995 is due. Squares near 2^24 are whole numbers in float32.
assert abs(got - 1) < 1e-3, f"with channels last {got:.6g}, should be 0.999995"
