"""A bfloat16 convolution dies where all taps of an axis lie in the padding.

Seen with torch 2.13.0 (oneDNN) on a CPU with AMX: a read outside of the input. The only window
along the first axis, which has one element, sees x[-2] and x[2]: every output is a sum of zeros.
float32 and float16 are right, and so is bfloat16 with ONEDNN_MAX_CPU_ISA=AVX512_CORE_BF16.
"""

import subprocess
import sys

SCRIPT = """
import torch

x = torch.zeros(1, 8, 1, 4, dtype=torch.bfloat16)
weight = torch.zeros(1, 8, 2, 2, dtype=torch.bfloat16)
torch.nn.functional.conv2d(x, weight, padding=(2, 1), dilation=(4, 1))
"""

done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, check=False)
assert done.returncode == 0, f"the process ended with {done.returncode}, should be 0"
