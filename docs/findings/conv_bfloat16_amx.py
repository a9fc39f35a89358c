"""A strided bfloat16 convolution of zeros is NaN: it reads memory that is not its input.

Seen with torch 2.13.0 (oneDNN) on a CPU with AMX. float32 and float16 are right, and so is bfloat16
with ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16.
"""

import torch
from torch.nn.functional import conv2d

x = torch.zeros(1, 1, 7, 3, dtype=torch.bfloat16)
weight = torch.ones(1, 1, 3, 3, dtype=torch.bfloat16)

for _ in range(100):
    # Memory that was used and given back, as there is in any program.
    used = [torch.full((size,), float("nan")) for size in (64, 256, 512, 1024, 2048, 4096)]
    del used
    out = conv2d(x, weight, stride=(1, 2), padding=(0, 2), dilation=(1, 3))
    wrong = out[out != 0].tolist()
    assert not wrong, f"{len(wrong)} of {out.numel()} outputs are like {wrong[0]}, should be 0"
