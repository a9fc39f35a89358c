"""An ignored row that holds an infinity or NaN gets a gradient of NaN in cross_entropy.

Seen with torch 2.13.0 on a CPU. The documentation says that an ignored target does not contribute
to the gradient.
"""

import torch
from torch.nn.functional import cross_entropy

x = torch.tensor([[float("inf"), 0.0], [0.0, 0.0]], requires_grad=True)
loss = cross_entropy(x, torch.tensor([-100, 0]))
loss.backward()
# The loss is log 2, that of the second row; the first one has no part in it.
assert abs(loss.item() - 0.6931472) < 1e-6
got = x.grad[0].tolist()
assert got == [0.0, 0.0], f"the gradient of the ignored row is {got}, should be [0, 0]"
