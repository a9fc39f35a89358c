"""A convolution with channels last dies where an axis has one tap, a dilation, padding and a stride
of 2.

Seen with torch 2.13.0 (oneDNN) on a CPU with AVX-512: a read outside of the input. The dilation of
an axis with one tap means nothing; without it, or in the ordinary memory format, all is well.
"""

import subprocess
import sys

SCRIPT = """
import torch

torch.set_num_threads(1)
for _ in range(100):
    x = torch.randn(2, 8, 2, 1).contiguous(memory_format=torch.channels_last)
    weight, bias = torch.randn(1, 8, 2, 1), torch.randn(1)
    torch.nn.functional.conv2d(x, weight, bias, stride=(1, 2), padding=(0, 1), dilation=(1, 2))
"""

done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, check=False)
assert done.returncode == 0, f"the process ended with {done.returncode}, should be 0"
