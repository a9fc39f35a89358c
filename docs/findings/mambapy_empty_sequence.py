"""The parallel scan of mamba.py refuses a sequence of no steps.

Seen with mambapy 1.2.0. The length is padded to 2 ** ceil(log2(T)), and log2(0) is an error of the
domain. States of no steps are due.
"""

import torch
from mambapy.pscan import pscan

empty = torch.zeros(1, 0, 2, 3)
try:
    got = tuple(pscan(empty, empty).shape)
except ValueError as error:
    got = f"{type(error).__name__}: {error}"
assert got == (1, 0, 2, 3), f"the scan of no steps gives {got}, should be (1, 0, 2, 3)"
