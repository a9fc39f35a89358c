"""A convolution of an input without channels gives no output channels, where sums of no terms are
due.

Seen with torch 2.13.0 on a CPU. The shape is that of the documentation, (N, Cout, Lout), for any
other number of input channels; a sum of no terms is 0, so every output is its bias.
"""

import torch
from torch.nn.functional import conv1d

x = torch.zeros(1, 0, 4)
weight, bias = torch.zeros(2, 0, 3), torch.tensor([1.0, 5.0])

got = conv1d(x, weight, bias)
assert list(got.shape) == [1, 2, 2], f"shape {list(got.shape)}, should be [1, 2, 2]"
