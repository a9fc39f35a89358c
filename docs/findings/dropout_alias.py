"""Outside training, and for p = 0, dropout returns its input and not a copy.

Seen with torch 2.13.0 on a CPU: a later change of the output in place changes the input.
"""

import torch
from torch.nn.functional import dropout

x = torch.ones(2)
dropout(x, training=False).zero_()
assert x.tolist() == [1.0, 1.0], f"the input has become {x.tolist()}, should stay [1, 1]"
