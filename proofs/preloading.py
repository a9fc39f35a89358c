"""The process that workers are forked from: it loads the catalogue once for all of them."""

from __future__ import annotations

import multiprocessing
from multiprocessing import forkserver

from assay.proofs import coqc


def start() -> None:
    """Begin loading, unless it has begun. It takes as long as it does here, so whoever starts it
    before loading the same waits only once.
    """
    coqc.shared()  # named here, it goes with this process
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["assay.proofs.preloaded"])
    forkserver.ensure_running()
