"""What becomes of one member of the zoo: a fault is hunted, a control is cleared, and the claims
that catch a fault are counted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

from assay.impl.loading import TargetError
from assay.impl.protocol import Unavailable
from assay.properties.profiles import Profile
from assay.properties.results import Finding
from assay.zoo.fault import Control, Fault
from assay.zoo.visit import Look, Visit

Outcome = Literal["caught", "wrong reason", "missed", "absent"]


@dataclass(frozen=True)
class Sighting:
    """A finding, and what it took to get there.

    examples  of the whole run up to the failure;  seconds: CPU time of the same
    shrink    CPU seconds from the failure to the small case
    size      largest dim of the small case
    """

    claim: str
    dtype: str
    verdict: str
    message: str
    case: str
    hint: str
    examples: int
    seconds: float
    shrink: float
    size: int


@dataclass(frozen=True)
class Hunt:
    """One run over a fault, in the order of the plan.

    first     the first finding, whatever it says
    right     the first by one of the fault's claims and with its verdict
    troubles  cells that an error of assay's own cost their verdict
    absent    why the member cannot be loaded on this machine, or ""
    seconds   CPU time of the whole run
    """

    fault: Fault
    seed: int
    first: Sighting | None = None
    right: Sighting | None = None
    cells: int = 0
    examples: int = 0
    troubles: tuple[str, ...] = ()
    absent: str = ""
    seconds: float = 0.0

    @property
    def outcome(self) -> Outcome:
        """Whether the fault was found, and for the right reason."""
        if self.absent:
            return "absent"
        if self.right is not None:
            return "caught"
        return "missed" if self.first is None else "wrong reason"

    @property
    def hinted(self) -> bool | None:
        """Whether the blame hint names what is wrong; None where there is nothing to name, or no
        finding that could.
        """
        if not self.fault.hint or self.right is None:
            return None
        return self.fault.hint in self.right.hint


@dataclass(frozen=True)
class Clearance:
    """One run over a control.

    alarms    its findings, each of which is false;  troubles: cells without a verdict
    seconds   CPU time of the whole run
    worst     greatest error over bound
    """

    control: Control
    seed: int
    cells: int = 0
    examples: int = 0
    alarms: tuple[str, ...] = ()
    troubles: tuple[str, ...] = ()
    worst: float = 0.0
    absent: str = ""
    seconds: float = 0.0


@dataclass(frozen=True)
class Sweep:
    """The properties that were asked of a fault, and those that caught it with its verdict.

    seconds  CPU time of the whole run
    """

    fault: Fault
    asked: tuple[str, ...] = ()
    caught_by: tuple[str, ...] = ()
    absent: str = ""
    seconds: float = 0.0


Record = Hunt | Clearance | Sweep


def hunt(fault: Fault, profile: Profile, seed: int) -> Hunt:
    """Run the plan until the fault is found for the right reason.

    After a finding that says something else only the fault's own claims are asked: whether the rest
    of the plan would have told the right reason too.
    """
    result = Hunt(fault, seed)
    seconds = 0.0
    try:
        with Visit(fault.target, profile, seed, adversarial=fault.adversarial) as visit:
            waiting = list(reversed(visit.keys))
            while waiting and result.right is None:
                look = visit.look(waiting.pop())
                cell = look.cell
                if (finding := cell.finding) is not None:
                    sighting = _sighting(look, finding, result.examples, seconds)
                    if result.first is None:
                        waiting = [key for key in waiting if key.property in fault.claims]
                    right = sighting if _expected(fault, finding) else None
                    result = replace(result, first=result.first or sighting, right=right)
                seconds += look.seconds
                result = replace(
                    result,
                    cells=result.cells + 1,
                    examples=result.examples + cell.examples,
                    troubles=result.troubles + _named(look, look.broken),
                    seconds=result.seconds + look.seconds + look.shrink,
                )
    except (TargetError, Unavailable) as error:
        return Hunt(fault, seed, absent=str(error))
    return result


def clear(control: Control, profile: Profile, seed: int) -> Clearance:
    """Run the whole plan over a control, in which nothing may be found."""
    result = Clearance(control, seed)
    try:
        with Visit(control.target, profile, seed) as visit:
            for key in visit.keys:
                look = visit.look(key)
                cell = look.cell
                alarms = () if cell.finding is None else _named(look, cell.finding.message)
                silent = cell.reason if cell.verdict == "inconclusive" else ""
                result = replace(
                    result,
                    cells=result.cells + 1,
                    examples=result.examples + cell.examples,
                    alarms=result.alarms + alarms,
                    troubles=result.troubles + _named(look, silent),
                    worst=max(result.worst, cell.worst if not alarms else 0.0),
                    seconds=result.seconds + look.seconds + look.shrink,
                )
    except (TargetError, Unavailable) as error:
        return Clearance(control, seed, absent=str(error))
    return result


def sweep(fault: Fault, profile: Profile, seed: int) -> Sweep:
    """Ask every property of the plan, in further dtypes and modes until it catches the fault."""
    asked: dict[str, None] = {}
    caught: dict[str, None] = {}
    seconds = 0.0
    try:
        quick = replace(profile, shrink_seconds=0.0)
        with Visit(fault.target, quick, seed, adversarial=fault.adversarial) as visit:
            for key in visit.keys:
                if key.property in caught:
                    continue
                look = visit.look(key)
                cell, seconds = look.cell, seconds + look.seconds + look.shrink
                if cell.verdict != "unsupported":
                    asked[key.property] = None
                if cell.finding is not None and _deserved(fault, cell.finding):
                    caught[key.property] = None
    except (TargetError, Unavailable) as error:
        return Sweep(fault, absent=str(error))
    return Sweep(fault, tuple(asked), tuple(caught), seconds=seconds)


Task = Callable[[], Record]


def _expected(fault: Fault, finding: Finding) -> bool:
    return finding.cell.property in fault.claims and _deserved(fault, finding)


def _deserved(fault: Fault, finding: Finding) -> bool:
    """Whether the verdict is the fault's. What comes and goes may happen to stay while it is
    confirmed.
    """
    comes_and_goes = fault.verdict == "flaky" and finding.verdict == "violated"
    return finding.verdict == fault.verdict or comes_and_goes


def _sighting(look: Look, finding: Finding, examples: int, seconds: float) -> Sighting:
    return Sighting(
        claim=finding.cell.property,
        dtype=finding.cell.dtype,
        verdict=finding.verdict,
        message=finding.message,
        case=finding.summary,
        hint=finding.hint,
        examples=examples + finding.examples,
        seconds=seconds + look.seconds,
        shrink=look.shrink,
        size=max(finding.case.get("dims", {}).values(), default=0),
    )


def _named(look: Look, text: str) -> tuple[str, ...]:
    return (f"{look.cell.key}: {text}",) if text else ()
