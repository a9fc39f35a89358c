"""The parallel scan of mamba.py refuses a batch of no rows.

Seen with mambapy 1.2.0. The steps are viewed in parts with a length of -1, which a tensor without
elements leaves open. States of no rows are due.
"""

import torch
from mambapy.pscan import pscan

empty = torch.zeros(0, 8, 2, 3)
try:
    got = tuple(pscan(empty, empty).shape)
except RuntimeError as error:
    got = f"{type(error).__name__}: {error}"
assert got == (0, 8, 2, 3), f"the scan of no rows gives {got}, should be (0, 8, 2, 3)"
