"""Faults that take the process along. Run them in a worker."""

from __future__ import annotations

import os

import numpy as np

from assay.zoo.sound import Array, Rules, TiledAttention, declared


class Abort(TiledAttention):
    """The process aborts where there are more than 4 keys, as a failed assertion in native code
    does.
    """

    contract = declared("zoo.abort")

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """SIGABRT."""
        if k.shape[2] > 4:
            os.abort()
        return super().forward(q, k, v, rules)


class EndlessLoop(TiledAttention):
    """The call does not return where there are more than 4 keys."""

    contract = declared("zoo.endless-loop")

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """A loop whose counter stands still."""
        done = 0
        while done < k.shape[2] - 4:
            done += 0
        return super().forward(q, k, v, rules)


class EndlessAllocation(TiledAttention):
    """Memory is taken without end where there are more than 4 keys."""

    contract = declared("zoo.endless-allocation")

    def forward(self, q: Array, k: Array, v: Array, rules: Rules) -> Array:
        """A workspace that grows eightfold until nothing is left."""
        workspace = [np.empty(1 << 25, np.uint8)]
        while k.shape[2] > 4:
            workspace.append(np.empty(8 * workspace[-1].size, np.uint8))
        return super().forward(q, k, v, rules)
