"""Files that other programs read: JSON, JUnit; and the door to the rendered reports."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree as ET

from assay.cli.command import Status
from assay.cli.versions import machine, own_version
from assay.properties.results import BAD, Cell, Result, to_json

SCHEMA = 1
"""Version of the JSON document; it grows when a field changes its meaning or goes."""


def write(
    kind: str, path: Path, result: Result, status: Status, stale: Sequence[str], directory: Path
) -> None:
    """Write ``result`` to ``path`` as ``kind``: json, junit, html or markdown."""
    if kind == "json":
        text = as_json(result, status, stale)
    elif kind == "junit":
        text = as_junit(result, stale)
    else:
        from assay.cli.report.pages import render

        text = render(kind, result, stale, directory)
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


def as_json(result: Result, status: Status, stale: Sequence[str] = ()) -> str:
    """The whole result; infinity and NaN, which JSON lacks, are the texts "inf" and "nan"."""
    document = {
        "schema": SCHEMA,
        "assay": own_version(),
        "machine": machine(),
        "status": int(status),
        "stale_known": list(stale),
        "result": to_json(result),
    }
    return json.dumps(document, indent=1, allow_nan=False, default=str) + "\n"


def as_junit(result: Result, stale: Sequence[str] = ()) -> str:
    """JUnit XML: a suite for each backend and mode, a test case for each cell.

    Failing cells are failures, inconclusive ones errors, unsupported and expected ones skipped, and
    so is the one case of an absent backend; what the campaign as a whole lacks (cells that never
    ran, stale entries) is a suite of its own.
    """
    root = ET.Element("testsuites", name="assay", time=f"{result.seconds:.3f}")
    groups: dict[str, list[Cell]] = {}
    for cell in sorted(result.cells, key=lambda c: c.key):
        mode = "" if cell.key.mode == "default" else f" ({cell.key.mode})"
        groups.setdefault(cell.key.backend + mode, []).append(cell)
    for name, cells in groups.items():
        suite = ET.SubElement(root, "testsuite", name=_xml(name))
        for cell in cells:
            _case(suite, name, cell)
        _count(suite)
    for absent in sorted(result.absent):
        name = _xml(absent.backend)
        suite = ET.SubElement(root, "testsuite", name=name)
        case = ET.SubElement(suite, "testcase", classname=name, name="can run here")
        ET.SubElement(case, "skipped", message=_xml(f"absent: {absent.why}"))
        _count(suite)
    whole = ET.SubElement(root, "testsuite", name="campaign")
    case = ET.SubElement(whole, "testcase", classname="campaign", name="every planned cell ran")
    if not result.finished or len(result.cells) < result.planned:
        ET.SubElement(case, "error", message=f"{len(result.cells)} of {result.planned} cells ran")
    for entry in stale:
        case = ET.SubElement(whole, "testcase", classname="known", name=_xml(entry))
        ET.SubElement(
            case, "failure", message="expected finding no longer shows; take the entry out"
        )
    _count(whole)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _case(suite: ET.Element, classname: str, cell: Cell) -> None:
    name = " ".join(filter(None, (cell.key.property, cell.key.op, cell.key.dtype)))
    case = ET.SubElement(
        suite, "testcase", classname=_xml(classname), name=_xml(name), time=f"{cell.seconds:.3f}"
    )
    finding = cell.finding
    if cell.verdict in BAD and finding is not None and finding.known:
        ET.SubElement(case, "skipped", message=_xml(f"known: {finding.known}"))
    elif cell.verdict in BAD:
        message = f"{finding.message} [{finding.summary}]" if finding else cell.reason
        failure = ET.SubElement(case, "failure", type=cell.verdict, message=_xml(message))
        if finding:
            failure.text = _xml(
                f"{finding.hint}\nassay replay {finding.id}\n{finding.trace}".strip()
            )
    elif cell.verdict == "inconclusive":
        ET.SubElement(case, "error", type="inconclusive", message=_xml(cell.reason))
    elif cell.verdict == "unsupported":
        ET.SubElement(case, "skipped", message=_xml(f"unsupported: {cell.reason}"))


def _count(suite: ET.Element) -> None:
    cases = list(suite)
    suite.set("tests", str(len(cases)))
    kinds: Sequence[tuple[str, str]] = (
        ("failures", "failure"),
        ("errors", "error"),
        ("skipped", "skipped"),
    )
    for total, tag in kinds:
        suite.set(total, str(sum(case.find(tag) is not None for case in cases)))


_FORBIDDEN = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""What XML 1.0 does not allow even as a reference."""


def _xml(text: str) -> str:
    r"""``text`` without the characters that XML forbids.

    >>> _xml("a\x00b")
    'a?b'
    """
    return _FORBIDDEN.sub("?", text)
