"""LlamaRMSNorm of float64 is good to float32.

Seen with transformers 5.24.0. The input is turned into float32 whatever its format, which is meant
for 16 bits. A model in float64 is then good to 6e-8, and finite differences of it are far off.
"""

import torch
from transformers.models.llama.modeling_llama import LlamaRMSNorm

x = torch.tensor([[1.0, 2.0, 3.0]], dtype=torch.float64)
norm = LlamaRMSNorm(3, eps=0.0).double()
got = norm(x)[0, 0].item()
due = (3 / 14) ** 0.5
# A handful of roundings of float64, each of 1.1e-16.
assert abs(got - due) < 1e-15, f"the norm of (1, 2, 3) begins with {got!r}, should be {due!r}"
