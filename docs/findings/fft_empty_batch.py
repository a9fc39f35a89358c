"""torch.fft raises an error of MKL where there is nothing to transform: no signal at all.

Seen with torch 2.13.0 (MKL) on a CPU. An empty batch has an empty spectrum, which numpy gives and
torch's other functions give for an empty batch.
"""

import torch

try:
    got = list(torch.fft.fft(torch.zeros(0, 4)).shape)
except RuntimeError as error:
    raise AssertionError(f"{error}, should have shape [0, 4]") from error
assert got == [0, 4], f"shape {got}, should be [0, 4]"
