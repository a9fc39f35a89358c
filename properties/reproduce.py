"""A finding as a Python script that needs no assay: the backend's source, the inputs, what must
hold.
"""

from __future__ import annotations

import pprint
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from importlib import resources
from string import Template
from typing import Any

import numpy as np

from assay.impl.call import Call
from assay.impl.contract import Contract
from assay.impl.loading import Target, resolve
from assay.impl.session import Description, Session, open_session
from assay.impl.signatures import ALIASES, signature
from assay.properties.case import Case, Materials
from assay.properties.context import context_of
from assay.properties.embedding import STAND_INS, embed, quoted
from assay.properties.experiment import (
    Between,
    Clean,
    Close,
    Combined,
    Distinct,
    Expectation,
    Experiment,
    Finite,
    Inner,
    Loud,
    Rejected,
    Same,
    Shaped,
    Subject,
)
from assay.properties.judge import Judgement, judge
from assay.properties.literals import literal
from assay.properties.profiles import PROFILES
from assay.properties.properties import find
from assay.properties.results import Finding
from assay.spec.claims import CLAIMS
from assay.spec.ops import op

_PATIENCE = 60
_HANG = 20
_FLAKY_ROUNDS = 20


@contextmanager
def writer(*, isolate: bool = True) -> Iterator[Callable[[Finding], str]]:
    """A function from a finding to its script, which keeps each backend loaded until the end of the
    block.

    The function runs a violated case once, to see which expectation it violates. It raises
    TargetError when the
    backend cannot be loaded any more.
    """
    sessions: dict[Target, Session] = {}

    def write(finding: Finding) -> str:
        target = resolve(finding.target, op=finding.cell.op)
        if target not in sessions:
            sessions[target] = open_session(
                target, isolate=isolate, timeout=PROFILES["quick"].timeout
            )
        return _write(finding, target, sessions[target])

    try:
        yield write
    finally:
        for session in sessions.values():
            session.close()


def _write(finding: Finding, target: Target, session: Session) -> str:
    key, case = finding.cell, Case.from_json(finding.case)
    context = context_of(op(key.op), session.description, key.dtype, key.mode)
    experiment = find(key.property).build(case, context, Materials(case))
    failing, note = None, ""
    if finding.verdict == "violated":
        judgement = judge(experiment, session.run(experiment.calls))
        failing = _failing(finding, judgement)
        if failing is None and judgement.failure is None:
            note = "The case alone did not fail when this was written: what ran before it matters."
    return script(finding, experiment, target, session.description, failing, note)


def _failing(finding: Finding, judgement: Judgement) -> int | None:
    """Index of the expectation that the finding is about; None when there is none now."""
    same = [v.expectation for v in judgement.violations if v.message == finding.message]
    return next(iter(same or [v.expectation for v in judgement.violations]), None)


def script(
    finding: Finding,
    experiment: Experiment,
    target: Target,
    description: Description,
    expectation: int | None = None,
    note: str = "",
) -> str:
    """The script's text: it exits with 1 and says ``FAULT`` if and only if the fault is there.

    expectation  index of the one that is violated; None checks them all (a crash, hang or exception
                 needs none)
    """
    checked = (
        experiment.expectations if expectation is None else (experiment.expectations[expectation],)
    )
    host = description.host
    name = experiment.calls[0].op
    return "\n".join(
        [
            _head(finding, description, note),
            _imports(host, experiment),
            f"OP = {name!r}",
            "inf, nan = np.inf, np.nan\n\n",
            _fill("stand_in", contract_defaults=_defaults(), stand_ins=repr(STAND_INS)),
            _backend(target),
            _fill("run", signature=_signature(name), aliases=repr(dict(ALIASES))),
            _fill(f"run_{host}", device=repr(description.contract.device), numpy_dtype=_bfloat16()),
            _fill("check", dtype=finding.cell.dtype),
            _main(finding, experiment, description, checked),
        ]
    )


def _fill(template: str, **values: str) -> str:
    place = resources.files("assay.properties").joinpath("templates", f"{template}.py.tmpl")
    return Template(place.read_text(encoding="utf-8")).substitute(values)


def _head(finding: Finding, description: Description, note: str) -> str:
    """What is wrong, as comments: words that come from a backend are kept from becoming code."""
    sentence = next((c.sentence for c in CLAIMS if c.id == finding.claim), "")
    versions = ", ".join(f"{name} {version}" for name, version in description.versions.items())
    needs = "numpy" if description.host == "numpy" else f"numpy and {description.host}"
    lines = [
        f"{finding.cell}: {finding.verdict}",
        f"Claim {finding.claim}: {sentence}",
        f"Seen: {finding.message}",
        f"Case: {finding.summary}; seed {finding.case.get('seed', 'none')}; finding {finding.id}",
        *([f"Looks like: {finding.hint}"] if finding.hint else []),
        f"Seen with: {versions}",
        *([note] if note else []),
        "",
        f"Run it with Python 3.11 or newer; it needs {needs}, and what the backend itself imports.",
        "Exit status: 1 while the fault is there, 0 once it is mended, 2 when it cannot tell.",
        "A crash ends it by a signal, a hang after a while; both print where.",
    ]
    return (
        "\n".join(f"# {' '.join(line.split())}".rstrip() for line in map(_printable, lines)) + "\n"
    )


def _printable(text: str) -> str:
    return "".join(c if c.isprintable() or c.isspace() else "?" for c in text)


def _imports(host: str, experiment: Experiment) -> str:
    arrays = [a for call in experiment.calls for a in call.inputs.values()]
    bits = host != "torch" and any(a.dtype.name == "bfloat16" for a in arrays)
    names = (
        "base64",
        "contextlib",
        "dataclasses",
        "faulthandler",
        "inspect",
        "linecache",
        "os",
        "sys",
        "traceback",
        "types",
        "zlib",
    )
    lines = [
        *(f"import {name}" for name in names),
        "",
        'os.environ.setdefault("OMP_NUM_THREADS", "1")',
        "",
    ]
    libraries = {"numpy as np", *(["ml_dtypes"] if bits else []), *([host] * (host != "numpy"))}
    lines += [*(f"import {library}" for library in sorted(libraries)), ""]
    return "\n".join(lines)


def _bfloat16() -> str:
    return "ml_dtypes.bfloat16"


def _defaults() -> str:
    return pprint.pformat(
        {f.name: f.default for f in fields(Contract) if f.name != "name"},
        width=100,
        sort_dicts=False,
    ).replace("\n", "\n        ")


def _signature(name: str) -> str:
    wanted = signature(name)
    return f"{wanted.inputs!r}, {dict(wanted.keywords)!r}, {wanted.outputs!r}"


def _backend(target: Target) -> str:
    """The source of the backend and its making; a module of an installed package is imported
    instead.
    """
    path = target.source()
    lines = ["# ---- The backend.", ""]
    packaged = (
        target.kind == "module" and "." in target.place and not target.place.startswith("assay.")
    )
    if path is None or path.suffix != ".py" or packaged:
        lines += [
            f"import {target.place}  # an installed package",
            "",
            f"made = sys.modules[{target.place!r}]",
        ]
    else:
        name = target.place if target.kind == "module" else path.stem
        lines += [
            f"sys.path.append({str(path.parent)!r})  # for what is not Python source beside it"
        ]
        for part in embed(name, path):
            lines += [f"made = load({part.name!r}, {str(part.path)!r}, {quoted(part.source)})", ""]
    lines += [
        f"BACKEND = made.{target.attr}",
        "if isinstance(BACKEND, type) and issubclass(BACKEND, Backend):",
        "    BACKEND = BACKEND()",
        "",
        "",
    ]
    return "\n".join(lines)


def _main(
    finding: Finding,
    experiment: Experiment,
    description: Description,
    checked: Sequence[Expectation],
) -> str:
    rejected = {e.call for e in experiment.expectations if isinstance(e, Rejected)}
    checks = [line for e in checked for line in _check(e, description)]
    return _fill(
        "main",
        limit=str(_HANG if finding.verdict == "hung" else _PATIENCE),
        calls="\n".join(_call(call, description) for call in experiment.calls),
        check="\n".join(f"    {line}" for line in checks),
        rejected=repr(sorted(rejected)),
        rounds=str(_FLAKY_ROUNDS if finding.verdict == "flaky" else 1),
    )


def _call(call: Call, description: Description) -> str:
    """One call as a ``dict(...)`` of what differs from the defaults of the script's ``run``."""
    tracked = (
        description.host == "torch"
        and description.contract.gradients
        and "no_grad" not in call.mode
    )
    layouts = {n: (x.kind, x.offset) for n, x in call.layouts.items() if x.kind != "contiguous"}
    parts = [f"inputs={_arrays(call.inputs)}", f"attributes={_attributes(call, description)!r}"]
    parts += [f"mode={call.mode!r}"] if call.mode != "default" else []
    parts += [f"cotangents={_arrays(call.cotangents)}"] if call.cotangents is not None else []
    parts += [f"layouts={layouts!r}"] if layouts else []
    parts += ["tracked=True"] if tracked else []
    parts += [f"repeat={call.repeat}"] if call.repeat > 1 else []
    parts += ["witness=True"] if call.witness else []
    return "    dict(\n" + "\n".join(f"        {part}," for part in parts) + "\n    ),"


def _arrays(arrays: Any) -> str:
    inner = "\n".join(f"            {name!r}: {literal(array)}," for name, array in arrays.items())
    return f"{{\n{inner}\n        }}"


def _attributes(call: Call, description: Description) -> dict[str, Any]:
    """The attributes as the runner passes them: an offset that the contract's alignment implies is
    left out.
    """
    implied = call.attributes.get("causal") and description.contract.causal_alignment != "offset"
    plain = {n: v.item() if isinstance(v, np.generic) else v for n, v in call.attributes.items()}
    return {n: v for n, v in plain.items() if not (implied and n == "offset")}


def _check(expectation: Expectation, description: Description) -> list[str]:
    match expectation:
        case Close(subject, want, bound):
            return _lines("close", _label(subject), _part(subject), literal(want), literal(bound))
        case Loud(subject, want, bound):
            return _lines(
                "close", _label(subject), _part(subject), literal(want), literal(bound), "loud=True"
            )
        case Same(subject, other, bound):
            limit = "0.0" if bound is None else literal(bound)
            return _lines("close", _label(subject), _part(subject), _part(other), limit)
        case Distinct(subject, other):
            message = f"{subject.name} of call {subject.call} has the bits of call {other.call}"
            return [
                f"if np.array_equal({_part(subject)}, {_part(other)}, equal_nan=True):",
                f"    fail({message!r})",
            ]
        case Combined(terms, bound):
            total = " + ".join(f"{factor!r} * {_part(subject)}" for factor, subject in terms)
            return [
                f"total = {total}",
                *_lines("close", _label(terms[0][1]), "total", "0 * total", literal(bound)),
            ]
        case Inner(pairs, want, bound):
            products = " + ".join(
                f"{factor!r} * np.sum({_part(subject)} * {_other(other)}, dtype=np.longdouble)"
                for factor, subject, other in pairs
            )
            label = repr(f"sum of products of {pairs[0][1].name}")
            got, due = (f"np.asarray({part})" for part in (products, repr(want)))
            return _lines("close", label, got, due, repr(bound))
        case Between(subject, low, high):
            return _lines("between", _label(subject), _part(subject), literal(low), literal(high))
        case Finite(subject):
            largest = "np.finfo(np.longdouble).max"
            return _lines("between", _label(subject), _part(subject), f"-{largest}", largest)
        case Shaped(subject, shape):
            what = f"{subject.name} has shape {{got.shape}}, should be {tuple(shape)}"
            return [
                f"got = {_part(subject)}",
                f"if got.shape != {tuple(shape)!r}:",
                f"    fail(f{what!r})",
            ]
        case Rejected(call, why, names):
            return [
                f"if REPLIES[{call}] is not None:",
                f"    fail({why + ' was accepted, should be an exception'!r})",
                f"left = [name for name in {names!r} if name not in REFUSALS[{call}]]",
                "if left:",
                f"    fail({why + ' was refused, but the message does not name '!r} + str(left))",
            ]
        case Clean(call, aspect):
            return [f"clean({call}, {aspect!r}, {expectation.wanted!r}, {expectation.limit!r})"]


def _other(other: Subject | np.ndarray) -> str:
    return _part(other) if isinstance(other, Subject) else literal(other)


def _lines(function: str, *arguments: str) -> list[str]:
    return [f"{function}(", *(f"    {argument}," for argument in arguments), ")"]


def _label(subject: Subject) -> str:
    name = f"d{subject.name}" if subject.gradient else subject.name
    return repr(f"sum of {name}" if subject.sum_axes else name)


def _part(subject: Subject) -> str:
    parts = [str(subject.call), repr(subject.name)]
    parts += ["gradient=True"] if subject.gradient else []
    parts += [f"take={subject.take!r}"] if subject.take else []
    parts += [f"sum_axes={subject.sum_axes!r}"] if subject.sum_axes else []
    return f"part({', '.join(parts)})"
