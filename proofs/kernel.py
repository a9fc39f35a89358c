"""Ask a proof assistant's kernel: Coq's, where ``coqc`` is installed.

The theorems stand in ``proofs/coq/``. Nothing is ever written there: each question is asked in a
temporary folder that is gone afterwards. Compiled modules are kept for the processes of one run, in
a folder that goes with it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any

from assay.proofs import coqc

SOURCES = Path(__file__).parent / "coq"
LIMIT = 120.0
"""Seconds for one run of coqc. The longest takes 2 on a quiet core."""
SHARED = coqc.shared()


class Missing(RuntimeError):
    """coqc is not installed."""


class Rejected(RuntimeError):
    """coqc does not accept a file: where, and what it says."""

    def __init__(self, module: str, line: int, message: str) -> None:
        super().__init__(f"coqc rejects {module}.v, line {line}: {message}")
        self.module, self.line, self.message = module, line, message


@dataclass(frozen=True)
class Agreement:
    """A term of the model, and the value that the executable spec gives: they must be equal."""

    name: str
    term: str
    value: Any


@dataclass(frozen=True)
class Mutation:
    """A text in a module, what stands there instead, and two terms that the mutated statement
    makes equal.
    """

    old: str
    new: str
    left: str
    right: str


def source(module: str) -> str:
    """The text of one module."""
    return (SOURCES / f"{module}.v").read_text(encoding="utf-8")


def theorems(module: str) -> tuple[str, ...]:
    """The names of the theorems of a module, in its order."""
    return _names(source(module))


def _names(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"^Theorem (\w+)", text, re.MULTILINE))


def needed(text: str) -> tuple[str, ...]:
    """Modules that a text imports, each after those that it imports itself."""
    found: dict[str, None] = {}
    for line in re.findall(r"^From Assay Require Import ([^.]+)\.", text, re.MULTILINE):
        for module in line.split():
            found.update(dict.fromkeys((*needed(source(module)), module)))
    return tuple(found)


@dataclass(frozen=True)
class Question:
    """What one run of coqc is asked: the module is read, its theorems rest on which axioms, its
    definitions agree with the spec, and the mutant, when there is one, is rejected.

    A run for each of these would mostly load the library of the real numbers again.
    """

    module: str
    theorems: tuple[str, ...] = ()
    checks: tuple[Agreement, ...] = ()
    mutation: Mutation | None = None

    def statement(self) -> list[str]:
        """In a module of its own, so that a text after it is read as it stands."""
        goals = [
            f"Goal {check.term} = {literal(check.value)}. Proof. vm_compute. reflexivity. Qed."
            for check in self.checks
        ]
        imported = (*needed(source(self.module)), self.module)
        return [
            "Module Statement.",
            *_preamble(*imported, terms=" ".join(goals)),
            *(f"Print Assumptions {theorem}." for theorem in self.theorems),
            *goals,
            "End Statement.",
        ]

    def instance(self) -> list[str]:
        """The mutated definitions, and two terms that they make different."""
        if self.mutation is None:
            return []
        terms = f"({self.mutation.left}) <> ({self.mutation.right})"
        return [
            "Module Mutant.",
            *without_proofs(self.mutated()).splitlines(),
            *_preamble(*needed(source(self.module)), terms=terms),
            f"Goal {terms}. Proof. vm_compute. discriminate. Qed.",
            "End Mutant.",
        ]

    def mutated(self) -> str:
        """The module with its mutation; ValueError when the text to replace does not occur exactly
        once.
        """
        text = source(self.module)
        if self.mutation is None:
            return ""
        if text.count(self.mutation.old) != 1:
            raise ValueError(
                f"old={self.mutation.old!r} occurs {text.count(self.mutation.old)} times in "
                f"{self.module}.v; valid: once"
            )
        return text.replace(self.mutation.old, self.mutation.new)

    def text(self) -> str:
        """All of it. coqc stops at the first error, so the mutant's proofs come last."""
        return "\n".join([*self.statement(), *self.instance(), self.mutated()]) + "\n"


def assumptions(question: Question) -> dict[str, tuple[str, ...]]:
    """The axioms that each theorem rests on, after the kernel accepted it and every agreement.

    Raises Rejected for a proof that is not accepted, and Disagreement for the first agreement that
    does not hold.
    """
    said, error = _answer(question.module, question.text())
    lines = question.statement()
    if error is not None and error.line <= len(lines):
        place = error.line - (len(lines) - len(question.checks))
        if 0 <= place < len(question.checks) and error.message.startswith("Unable to unify"):
            raise Disagreement(question.checks[place].name, error.message) from error
        raise error
    return dict(zip(question.theorems, _axioms(said), strict=True))


def axioms(module: str) -> tuple[str, ...]:
    """The axioms that the theorems of a module rest on, each on some of them.

    Raises Rejected for a proof that the kernel does not accept.
    """
    return _compiled(module, source(module)).axioms


def _preamble(*modules: str, terms: str) -> list[str]:
    """What terms need around them: literals are naturals unless they say otherwise."""
    numbers = [name for mark, name in (("%Q", "QArith"), ("%Z", "ZArith")) if mark in terms]
    return [
        f"From Coq Require Import {' '.join(['List', *numbers])}.",
        "Import ListNotations.",
        f"From Assay Require Import {' '.join(modules)}." if modules else "",
        "Local Close Scope Q_scope." if "QArith" in numbers else "",
        "Local Open Scope nat_scope.",
    ]


class Disagreement(RuntimeError):
    """The model and the executable spec give different values."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"the model and the spec disagree: {name}: {message}")


def refutation(question: Question) -> str:
    """Why the mutated module is wrong: the kernel rejects its proof, and an instance is false.

    An empty text when it is not: coqc accepts the proof, or the instance holds. Raises ValueError
    when the text to replace does not occur exactly once, and Rejected when the statement itself or
    the definitions without proofs are not accepted: such a mutation says nothing about the theorem.
    """
    _, error = _answer(question.module, question.text())
    if error is None or question.mutation is None:
        return ""
    before, inside = len(question.statement()), len(question.instance())
    line = error.line - before - inside
    place = _place(question.mutated(), line)
    if line > 0 and place and not error.message.startswith("Syntax error"):
        left, right = question.mutation.left, question.mutation.right
        return f"{left} is not {right}, and coqc rejects the proof of {place}"
    if error.line <= before or "discriminable" not in error.message:
        raise error
    return ""


def without_proofs(text: str) -> str:
    """A module's definitions alone: every lemma and theorem is taken out."""
    return re.sub(r"^(?:Lemma|Theorem)\b.*?\bQed\.$", "", text, flags=re.MULTILINE | re.DOTALL)


def literal(value: Any) -> str:
    """A Python value in Coq's words: naturals, truth values, fractions, lists and pairs.

    >>> literal([1, 2]), literal((True, Fraction(-1, 2)))
    ('[1; 2]', '(true, ((-1) # 2)%Q)')
    """
    match value:
        case bool():
            return "true" if value else "false"
        case int():
            return str(value) if value >= 0 else f"({value})%Z"
        case Fraction():
            sign = f"({value.numerator})" if value < 0 else str(value.numerator)
            return f"({sign} # {value.denominator})%Q"
        case list():
            return "[" + "; ".join(map(literal, value)) + "]"
        case tuple():
            return "(" + ", ".join(map(literal, value)) + ")"
        case str():
            return value
    raise TypeError(f"value={value!r} has no literal; valid: bool, int, Fraction, list, tuple, str")


def _place(text: str, line: int) -> str:
    """The lemma or theorem in whose proof or statement this line stands; empty outside of them."""
    before = "\n".join(text.splitlines()[: max(0, line)])
    heads = re.findall(r"^(Lemma|Theorem|Definition|Fixpoint|Record|Section) (\w+)", before, re.M)
    kind, name = heads[-1] if heads else ("", "")
    return str(name) if kind in ("Lemma", "Theorem") else ""


def _axioms(said: str) -> list[tuple[str, ...]]:
    """For each ``Print Assumptions``, the names that it printed."""
    found: list[list[str]] = []
    for line in said.splitlines():
        if line in ("Closed under the global context", "Axioms:"):
            found.append([])
        elif found and (name := re.match(r"[\w.']+", line)):
            found[-1].append(name[0])
    return [tuple(sorted(names)) for names in found]


def _objects(*modules: str) -> dict[str, bytes]:
    """The compiled modules, with all that they import."""
    every = dict.fromkeys(m for module in modules for m in (*needed(source(module)), module))
    return {module: _compiled(module, source(module)).content for module in every}


@dataclass(frozen=True)
class _Compiled:
    """A module that the kernel accepted, and the axioms that its theorems rest on together."""

    content: bytes
    axioms: tuple[str, ...]


@lru_cache(maxsize=64)
def _compiled(module: str, text: str) -> _Compiled:
    objects = _objects(*needed(text))
    text += _together(text)
    parts = (coqc.version().encode(), module.encode(), text.encode(), *objects.values())
    kept = SHARED / hashlib.sha256(b"\0".join(parts)).hexdigest()
    listed = kept.with_suffix(".axioms")
    with _alone(kept):  # another process may be compiling the same module
        if not kept.exists():
            with _folder(objects) as folder:
                said, error = _run(folder, module, text)
                if error is not None:
                    raise error
                listed.write_text("\n".join(*_axioms(said)), encoding="utf-8")
                # A process that is killed here leaves nothing half written.
                (folder / f"{module}.vo").replace(kept)
        names = listed.read_text(encoding="utf-8").split()
        return _Compiled(kept.read_bytes(), tuple(names))


def _together(text: str) -> str:
    """All theorems of a module as one term. What one of them rests on is looked for through the
    library of the real numbers, which takes as long for one as for all.
    """
    *others, last = _names(text)
    term = "".join(f"(@{name}, " for name in others) + f"@{last}" + ")" * len(others)
    return f"\nDefinition every_theorem := {term}%core.\nPrint Assumptions every_theorem.\n"


@lru_cache(maxsize=4)
def _answer(module: str, text: str) -> tuple[str, Rejected | None]:
    """What coqc says of a text about a compiled module. A statement and its twin ask together."""
    with _folder(_objects(module)) as folder:
        return _run(folder, "Check", text)


@contextmanager
def _alone(kept: Path) -> Iterator[None]:
    """One process at a time; the lock goes with the process that holds it."""
    SHARED.mkdir(mode=0o700, exist_ok=True)
    with kept.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextmanager
def _folder(objects: dict[str, bytes]) -> Iterator[Path]:
    """A fresh folder that holds these compiled modules."""
    SHARED.mkdir(mode=0o700, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=SHARED) as name:
        folder = Path(name)
        for module, content in objects.items():
            (folder / f"{module}.vo").write_bytes(content)
        yield folder


def _run(folder: Path, module: str, text: str) -> tuple[str, Rejected | None]:
    """What coqc prints on a module, and the error that it stopped at."""
    program = coqc.program()
    if program is None:
        raise Missing(coqc.absent())
    (folder / f"{module}.v").write_text(text, encoding="utf-8")
    done = subprocess.run(
        [program, "-q", "-Q", ".", "Assay", f"{module}.v"],
        cwd=folder,
        env={k: v for k, v in os.environ.items() if k != "COQPATH"},
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    error = _rejection(module, done.stderr or done.stdout) if done.returncode else None
    return done.stdout, error


def _rejection(module: str, said: str) -> Rejected:
    found = re.search(r"line (\d+), characters [\d-]+:\s*Error:\s*(.*)", said, re.DOTALL)
    if found is None:
        return Rejected(module, 0, " ".join(said.split()))
    # The context of a proof is long, and what is wrong stands after it.
    last = found[2].split("\n\n")[0]
    last = re.sub(r"In environment\n(?:.*\n)*?(?=[A-Z][a-z]+ )", "", last)
    return Rejected(module, int(found[1]), " ".join(last.split()))
