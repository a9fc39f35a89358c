"""What a mutation of the spec is: one edit of one file, and the claims that it makes false."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    """One edit of one file of the spec.

    file    below ``spec/``
    old     occurs exactly once in it
    claims  those with proofs that the edit makes false; empty: none does, and ``why`` says why not
    why     also given where the proofs are known to miss a false claim
    """

    file: str
    old: str
    new: str
    claims: tuple[str, ...] = ()
    why: str = ""

    def __str__(self) -> str:
        return f"{self.file}: {self.old} -> {self.new or 'nothing'}"
