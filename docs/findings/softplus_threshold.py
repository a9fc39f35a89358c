"""softplus is x itself above 20, in float64 too.

Seen with torch 2.13.0 on a CPU; the threshold is documented, "for numerical stability". In float32
it is below rounding. In float64, ln(1 + exp(x)) = x + exp(-x) - ... is 213430 units in the last
place above x at 21, and log1p has no difficulty.
"""

import math

import torch
from torch.nn.functional import softplus

x = torch.tensor(21.0, dtype=torch.float64, requires_grad=True)
y = softplus(x)
y.backward()
due, slope = 21.0 + math.log1p(math.exp(-21.0)), 1.0 / (1.0 + math.exp(-21.0))
wrong = [
    f"{name} = {got!r}, should be {want!r}"
    for name, got, want in (("softplus(21)", y.item(), due), ("its slope", x.grad.item(), slope))
    if abs(got - want) > 1e-14
]
assert not wrong, "; ".join(wrong)
