"""A head that is masked altogether gives NaN in nn.MultiheadAttention, on two of three paths.

Seen with torch 2.13.0 on a CPU: NaN whenever weights are asked for, and on the fast path of eval
and no_grad; zeros on the path through scaled_dot_product_attention.
"""

import torch

torch.manual_seed(0)
module = torch.nn.MultiheadAttention(4, 2, batch_first=True).eval()
x = torch.randn(1, 3, 4)
blocked = torch.tensor([False, True]).reshape(2, 1, 1).expand(2, 3, 3)  # Head 1 sees nothing.

wrong = []
for grad in (True, False):
    for weights in (False, True):
        with torch.set_grad_enabled(grad):
            out = module(x, x, x, attn_mask=blocked, need_weights=weights)[0]
        # The blocked head adds zeros; the other one is not affected.
        wrong += [] if out.isfinite().all() else [f"grad={grad}, need_weights={weights}"]
assert not wrong, f"NaN with {'; with '.join(wrong)}"
