"""A bfloat16 convolution reads the wrong rows where the last axis has one output and a stride.

Seen with torch 2.13.0 (oneDNN) on a CPU with AMX: some outputs are those of later rows, others are
what lies beyond the input, whatever memory held. float32 and float16 are right, and so is bfloat16
with ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16.
"""

import torch
from torch.nn.functional import conv2d

rows = torch.arange(6.0)
x = rows[:, None].repeat(1, 3, 1, 4).to(torch.bfloat16)  # all entries of row i are i
weight = torch.ones(1, 3, 1, 4, dtype=torch.bfloat16)

# A window is a row: 3 channels of 4 entries.
got, due = conv2d(x, weight, stride=(1, 4)).flatten().tolist(), (12 * rows).tolist()
assert got == due, f"{got}, should be {due}"
