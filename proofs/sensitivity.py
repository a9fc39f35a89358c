"""Would the proofs notice? Each mutation is applied to a copy of the package, in a temporary
folder, and the obligations are settled there until one does not hold.

Twins are left out: only the statements themselves count, and not that an edit no longer fits.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from assay.proofs.fingerprint import ROOT
from assay.proofs.mutation import Mutation

LIMIT = 600.0
"""Seconds for all obligations on one copy."""


@dataclass(frozen=True)
class Notice:
    """Which obligation noticed a mutation, and what it said; ``by`` is empty when none did."""

    mutation: Mutation
    by: str
    said: str
    seconds: float

    @property
    def noticed(self) -> bool:
        """Whether one did."""
        return bool(self.by)


def examine(mutation: Mutation | None, claims: Sequence[str] = ()) -> tuple[str, str]:
    """The id of the first obligation that does not hold on a mutated copy, and why; empty when all
    hold.

    The obligations of ``claims`` come first. Without a mutation the copy is as it is here, and they
    alone are asked, where there are any. Raises RuntimeError when the copy cannot be examined.
    """
    alone = ["--alone"] if mutation is None and claims else []
    with tempfile.TemporaryDirectory(prefix="assay-mutation-") as folder:
        copy = Path(folder) / "assay"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns("__pycache__"))
        if mutation is not None:
            path = copy / "spec" / mutation.file
            path.write_text(applied(path.read_text(encoding="utf-8"), mutation), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", __name__, folder, *alone, *claims],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": folder, "PYTHONHASHSEED": "0"},
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT,
        )
    if done.returncode:
        raise RuntimeError(f"{mutation}: {done.stderr[-2000:]}")
    by, said = json.loads(done.stdout.splitlines()[-1])
    return by, said


def notice(mutation: Mutation) -> Notice:
    """What the proofs say of one mutation."""
    start = time.perf_counter()
    by, said = examine(mutation, mutation.claims)
    return Notice(mutation, by, said, time.perf_counter() - start)


def applied(source: str, mutation: Mutation) -> str:
    """The mutated source.

    Raises ValueError when the text to replace does not occur exactly once.
    """
    count = source.count(mutation.old)
    if count != 1:
        raise ValueError(
            f"old={mutation.old!r} occurs {count} times in spec/{mutation.file}; valid: once"
        )
    return source.replace(mutation.old, mutation.new)


def _keep_going(make: Callable[..., Any]) -> Callable[..., Any]:
    """A maker of twins that gives the function itself where its edit does not fit any more."""

    def careful(function: Callable[..., Any], *edits: Any, **names: Any) -> Callable[..., Any]:
        try:
            made: Callable[..., Any] = make(function, *edits, **names)
        except ValueError:
            return function
        return made

    return careful


def _first_failure(claims: Sequence[str], alone: bool) -> tuple[str, str]:
    """Runs in the copy: the first obligation there, or among those of ``claims`` alone, whose
    statement does not hold.
    """
    from assay.proofs import mutants

    mutants.mutant = _keep_going(mutants.mutant)
    mutants.rebound = _keep_going(mutants.rebound)
    from assay.proofs.obligation import Case, Twin
    from assay.proofs.obligations import OBLIGATIONS
    from assay.proofs.settling import settle

    silent = Twin("nothing", lambda: [Case("refuted", False)])
    quick = {"enumeration": 0, "arb": 1, "z3": 2, "sympy": 3, "coq": 4}
    # Coq takes seconds for each and meets the spec on small instances only: it is asked about the
    # named claims alone.
    asked = [o for o in OBLIGATIONS if o.claim in claims or not (alone or o.method == "coq")]
    order = sorted(asked, key=lambda o: (o.method == "coq", o.claim not in claims, quick[o.method]))
    late = ""
    for obligation in order:
        outcome = settle(replace(obligation, twin=silent))
        if outcome.status == "open" and "timeout" in outcome.detail:
            late = late or f"only out of time: {outcome.id}"  # a busy machine may be the reason
        elif outcome.failed:
            return outcome.id, f"{outcome.status}: {outcome.detail}"
    return "", late


if __name__ == "__main__":
    if not ROOT.is_relative_to(Path(sys.argv[1]).resolve()):
        raise SystemExit(f"ROOT={ROOT} must be the copy in {sys.argv[1]}")
    given = [text for text in sys.argv[2:] if text != "--alone"]
    found = _first_failure(given, alone="--alone" in sys.argv)
    sys.stdout.write(json.dumps(found) + "\n")
