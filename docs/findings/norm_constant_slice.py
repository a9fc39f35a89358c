"""batch_norm of a constant channel is far from its bias.

Seen with torch 2.13.0 on a CPU: x * (weight * rate) + (bias - mean * weight * rate) with a rate of
1 / sqrt(eps) = 316. layer_norm, and group_norm of most shapes, subtract the mean first.
"""

import torch
from torch.nn.functional import batch_norm, layer_norm

wrong = []
for value in (1e5, -1e6, 1e7):
    x = torch.full((1, 1, 2), value)  # Its mean is exact in float32: x - mean = 0.
    assert layer_norm(x, (2,)).tolist() == [[[0.0, 0.0]]]
    out = batch_norm(x, None, None, training=True)[0, 0, 0].item()
    wrong += [] if out == 0 else [f"{out:.6g} at {value:g}"]
assert not wrong, f"out = {', '.join(wrong)}; should be 0"
