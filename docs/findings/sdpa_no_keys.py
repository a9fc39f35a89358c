"""Without any key, float16 attention is NaN when the queries sum to more than 65504.

Seen with torch 2.13.0 on a CPU: the result is zeros plus 0 times the sum of the queries, and 0
times infinity is NaN.
"""

import torch
from torch.nn.functional import scaled_dot_product_attention

q = torch.full((1, 1, 16, 64), 96.0, dtype=torch.float16)
empty = torch.zeros(1, 1, 0, 64, dtype=torch.float16)

out = scaled_dot_product_attention(q, empty, empty)
# A query that sees no key gets zeros, as it does for smaller queries.
nans = int(out.isnan().sum())
assert nans == 0, f"{nans} of {out.numel()} outputs are NaN, should be 0"
