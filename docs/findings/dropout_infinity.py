"""Dropout turns an infinity or NaN that it drops into NaN, where it says that it zeroes it.

Seen with torch 2.13.0 on a CPU: the mask is multiplied with the input, and p = 1 multiplies by 0.
"""

import torch
from torch.nn.functional import dropout

# p = 1 drops every entry.
out = dropout(torch.tensor([1.0, float("inf"), float("nan")]), p=1.0)
assert out.tolist() == [0.0, 0.0, 0.0], f"{out.tolist()}, should be [0, 0, 0]"
