"""``pytest --assay my_kernels.py:MyBackend``: every cell of a campaign is a test.

Loaded by pytest at each start, so it imports nothing of assay until ``--assay`` is given.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from assay.impl.description import Description
    from assay.impl.loading import Target
    from assay.properties.executor import Job
    from assay.properties.known import Known
    from assay.properties.plan import Selection
    from assay.properties.profiles import Profile
    from assay.properties.results import Cell, CellKey

FOLDER = "assay/"
"""What the ids of cells begin with."""


# -- Options


def pytest_addoption(parser: pytest.Parser) -> None:
    """The options, all of them about ``--assay``."""
    group = parser.getgroup("assay", "conformance of neural-network kernels (assay)")
    add = group.addoption
    add(
        "--assay",
        action="append",
        default=[],
        metavar="TARGET",
        help="collect each cell of this backend (as for `assay run`) as a test; without paths, "
        "nothing else is collected; repeatable",
    )
    add("--assay-profile", default="quick", metavar="NAME", help="quick, ci, nightly or soak")
    add("--assay-op", metavar="OP", help="the op that a plain function computes")
    add("--assay-ops", metavar="OP,...", help="only these ops")
    add("--assay-claims", metavar="GLOB,...", help="only claims that match")
    add("--assay-dtypes", metavar="DTYPE,...", help="only these element types")
    add("--assay-device", metavar="DEVICE", help="torch device string")
    add("--assay-known", metavar="FILE", help="expected findings (known.toml): they are xfail")
    add("--assay-seed", type=int, default=0, metavar="N", help="seed (default: %(default)s)")
    add(
        "--assay-no-isolate",
        action="store_true",
        help="run backends in pytest's own process: for a debugger",
    )
    # Not for people: ids of cells that were given as paths, which xdist hands to its workers.
    add("--assay-node", action="append", default=[], help=argparse.SUPPRESS)


def pytest_configure(config: pytest.Config) -> None:
    """With ``--assay``: check the options before anything is collected, and register markers."""
    if not config.option.assay:
        return
    config.pluginmanager.register(_Campaign(config), "assay-campaign")


def _words(text: str | None) -> tuple[str, ...] | None:
    from assay.cli.command import words

    return None if text is None else words(text)


@dataclass
class _Ran:
    """What is known of one expected fault: its cells that are planned, and what became of some."""

    planned: int = 0
    cells: list[tuple[str, bool]] = field(default_factory=list)


class _Campaign:
    """The part of the plugin that exists only with ``--assay``."""

    def __init__(self, config: pytest.Config) -> None:
        """UsageError says what is wrong with an option and what is valid."""
        from assay.impl.loading import TargetError, resolve
        from assay.properties.known import Known, KnownError, load
        from assay.properties.plan import OptionError, Selection, profile_named

        given = config.option
        try:
            self.profile = profile_named(given.assay_profile)
            self.selection = Selection(
                *map(_words, (given.assay_ops, given.assay_claims, given.assay_dtypes))
            )
            self.targets = [
                resolve(text, op=given.assay_op, device=given.assay_device) for text in given.assay
            ]
            self.known = load(Path(given.assay_known)) if given.assay_known else Known()
        except (TargetError, OptionError, KnownError) as error:
            raise pytest.UsageError(str(error)) from error
        self.config = config
        self.expected: dict[int, _Ran] = {}
        self.stale: tuple[str, ...] = ()
        _take_nodes(config)
        _register_markers(config)

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(
        self, session: pytest.Session, items: list[pytest.Item]
    ) -> None:
        """Add the cells, before ``-k`` and ``-m`` choose among the items."""
        found: list[pytest.Item] = []
        for target in self.targets:
            backend = _Backend.from_parent(session, name=target.text, campaign=self, target=target)
            report = session.ihook.pytest_make_collect_report(collector=backend)
            session.ihook.pytest_collectreport(report=report)
            found += report.result or []
        cells = [item for item in found if isinstance(item, CellItem)]
        _note_expected(self.known, cells)
        wanted = self.config.option.assay_node
        left = [item for item in found if wanted and item.nodeid not in wanted]
        items += [item for item in found if item not in left]
        if left:
            self.config.hook.pytest_deselected(items=left)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Let the report carry what the process that sums up has to know."""
        report = yield
        if isinstance(item, CellItem) and call.when == "call" and item.cell is not None:
            report.assay = [item.cell.verdict, item.cell.cut, item.expected]  # type: ignore[attr-defined]
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count, in the process that has all reports."""
        verdict, cut, expected = getattr(report, "assay", ("", False, []))
        for index, planned in expected:
            ran = self.expected.setdefault(index, _Ran(planned))
            ran.cells.append((verdict, cut))

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """End the workers; fail when an expected fault no longer shows."""
        from assay.properties.executor import close_sessions

        close_sessions()
        if hasattr(self.config, "workerinput"):
            return
        self.stale = tuple(self._stale())
        if self.stale and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _stale(self) -> Iterator[str]:
        """Entries of which all cells ran: a choice by ``-k`` says nothing of the others."""
        from assay.properties.known import gone

        for index, ran in sorted(self.expected.items()):
            if len(ran.cells) == ran.planned and gone(ran.cells):
                yield str(self.known.entries[index])

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Name the entries that must be taken out."""
        if self.stale:
            terminalreporter.section("expected findings that no longer show", red=True)
            for entry in self.stale:
                terminalreporter.line(f"take it out of {self.config.option.assay_known}: {entry}")


def _take_nodes(config: pytest.Config) -> None:
    """Take ids of cells out of the paths; without paths of the user, look into none."""
    if config.args_source is not pytest.Config.ArgsSource.ARGS:
        config.args = []
        return
    nodes = [a for a in config.args if a.startswith(FOLDER) and not Path(a).exists()]
    config.args = [a for a in config.args if a not in nodes]
    config.option.assay_node += nodes


def _register_markers(config: pytest.Config) -> None:
    from assay.impl.contract import DTYPES
    from assay.spec.claims import CLAIMS
    from assay.spec.ops import OPS

    families = {claim.id.partition(".")[0] for claim in CLAIMS}
    for name in sorted({"assay", *DTYPES, *families, *(op.name for op in OPS)}):
        config.addinivalue_line("markers", f"{name}: set by assay on its cells")


# -- Collection


class _Backend(pytest.Collector):
    """The cells of one backend."""

    def __init__(self, *, campaign: _Campaign, target: Target, **rest: Any) -> None:
        super().__init__(**rest)
        self.campaign, self.target = campaign, target

    def collect(self) -> list[pytest.Item]:
        """One item for each cell; one that says why, where the backend cannot run here."""
        from assay.impl.loading import TargetError
        from assay.impl.protocol import Unavailable
        from assay.impl.session import open_session

        campaign = self.campaign
        isolate = not self.config.option.assay_no_isolate
        try:
            with open_session(self.target, isolate=isolate) as session:
                description = session.description
        except Unavailable as error:
            name = "can run here"
            nodeid = f"{FOLDER}{self.target.text.replace('::', ':')}::{name}"
            return [_Absent.from_parent(self, name=name, nodeid=nodeid, reason=str(error))]
        except TargetError as error:
            raise self.CollectError(str(error)) from error
        return list(self._cells(description, campaign.selection, campaign.profile, isolate))

    def _cells(
        self, description: Description, selection: Selection, profile: Profile, isolate: bool
    ) -> Iterator[pytest.Item]:
        from assay.properties.executor import Job
        from assay.properties.plan import allotted, cells, seed_of

        for key in cells(description, selection, profile):
            job = Job(
                key=key,
                target=self.target,
                profile=allotted(key, description, profile),
                seed=seed_of(self.config.option.assay_seed, key),
                isolate=isolate,
                database=None,
            )
            name = _name(key)
            yield CellItem.from_parent(
                self,
                name=name,
                nodeid=f"{FOLDER}{key.backend}::{name}",
                job=job,
                versions=dict(description.versions),
                known=self.campaign.known,
            )


def _name(key: CellKey) -> str:
    """What an item is called: ``attention.refines[float32-no_grad]``; the op where the property's
    name does not say it.
    """
    family = key.property.partition(".")[0]
    parts = [key.op if key.op != family else "", key.dtype, key.mode.replace("default", "")]
    return f"{key.property}[{'-'.join(filter(None, parts))}]"


def _note_expected(known: Known, items: Sequence[CellItem]) -> None:
    """Tell each item which strict entries speak of it, and of how many cells they speak in all."""
    for index, entry in enumerate(known.entries):
        if entry.rare:
            continue
        own = [i for i in items if entry.applies(i.versions) and entry.covers(i.planned)]
        for item in own:
            item.expected.append((index, len(own)))


# -- Items


class CellFailed(Exception):
    """A cell with a finding, or without an answer; the message is what pytest shows."""


class _Absent(pytest.Item):
    """Stands for a backend that cannot run here: always skipped."""

    def __init__(self, *, reason: str, **rest: Any) -> None:
        super().__init__(**rest)
        self.reason = reason
        self.add_marker("assay")

    def runtest(self) -> None:
        """Say why."""
        pytest.skip(f"absent: {self.reason}")

    def reportinfo(self) -> tuple[Path, None, str]:
        """Where the item is, for pytest's output."""
        return self.path, None, self.nodeid


class CellItem(pytest.Item):
    """One cell as a test.

    expected  (index of a strict entry that speaks of it, number of cells that it speaks of)
    cell      what became of it
    """

    def __init__(self, *, job: Job, versions: dict[str, str], known: Known, **rest: Any) -> None:
        super().__init__(**rest)
        self.job, self.versions, self.known = job, versions, known
        self.expected: list[tuple[int, int]] = []
        self.cell: Cell | None = None
        key = job.key
        for mark in ("assay", key.op, key.property.partition(".")[0], key.dtype):
            self.add_marker(mark)

    @property
    def planned(self) -> Cell:
        """The cell as entries of known.toml match it."""
        from assay.properties.properties import find
        from assay.properties.results import Cell

        return Cell(self.job.key, find(self.job.key.property).claim, "inconclusive")

    def runtest(self) -> None:
        """Run the cell; held passes, unsupported is skipped, an expected finding is xfail."""
        from assay.properties.executor import run_job
        from assay.properties.known import mark
        from assay.properties.results import BAD

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cell = self.cell = mark(self.known, run_job(self.job), self.versions)
        self.user_properties += [("verdict", cell.verdict), ("examples", cell.examples)]
        if cell.grade:
            self.user_properties.append(("grade", cell.grade))
        if cell.verdict == "unsupported":
            pytest.skip(f"unsupported: {cell.reason}")
        if cell.finding is not None and cell.finding.known:
            pytest.xfail(cell.finding.known)
        if cell.verdict in BAD or cell.verdict == "inconclusive":
            raise CellFailed(_explained(cell, self._again()))

    def _again(self) -> str:
        """The command that finds it again and keeps it, for replay and repro."""
        key, job = self.job.key, self.job
        return (
            f"assay run {job.target.text} --claims {key.property} --ops {key.op} "
            f"--dtypes {key.dtype} --profile {job.profile.name} "
            f"--seed {self.config.option.assay_seed}"
        )

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException]) -> Any:  # type: ignore[override]
        """The message alone for a finding; the traceback for an error of assay's own."""
        if isinstance(excinfo.value, CellFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo)

    def reportinfo(self) -> tuple[Path, None, str]:
        """Where the item is, for pytest's output."""
        return self.path, None, self.nodeid


def _explained(cell: Cell, again: str) -> str:
    """A failing cell in a few lines."""
    finding = cell.finding
    if finding is None:
        return f"{cell.key}: {cell.verdict}: {cell.reason}"
    lines = [
        f"{finding.cell}: {finding.message}",
        f"smallest case: {finding.summary}",
        f"looks like: {finding.hint}" if finding.hint else "",
        f"found after {finding.examples} examples",
        f"again: {again}",
        "       then: assay replay ID, assay repro ID -o bug.py",
        finding.trace,
    ]
    return "\n".join(line for line in lines if line)
