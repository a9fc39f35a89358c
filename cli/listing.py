"""``assay list``: what there is to check, to check it against, and to check it with.

``capsules`` has a file of its own: backends must be loaded for it.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from typing import TYPE_CHECKING

from assay.cli import capsules, console
from assay.cli.command import Command, Status, UsageError, add_store, words

if TYPE_CHECKING:
    from assay.impl.registry import Builtin

Rows = list[dict[str, str]]


def _ops() -> Rows:
    from assay.spec.ops import OPS

    return [
        {
            "op": op.name,
            "inputs": ", ".join(
                f"{i.name}[{' '.join(i.dims)}]{'?' if i.optional else ''}" for i in op.inputs
            ),
            "attributes": ", ".join(f"{a.name}={a.default}" for a in op.attributes),
            "outputs": ", ".join(f"{name}[{' '.join(dims)}]" for name, dims in op.outputs.items()),
            "summary": op.summary,
        }
        for op in OPS
    ]


def _claims() -> Rows:
    from assay.spec.claims import CLAIMS

    return [
        {
            "claim": claim.id,
            "kind": claim.kind,
            "evidence owed": " ".join(
                word for word, owed in (("proof", claim.proof), ("test", claim.test)) if owed
            ),
            "judged": "bitwise" if claim.exact else "",
            "statement": claim.sentence,
        }
        for claim in CLAIMS
    ]


def _backends() -> Rows:
    from assay.impl.loading import installed
    from assay.impl.registry import BACKENDS

    own = [
        {
            "backend": b.name,
            "here": _here(b),
            "from": b.location,
            "summary": b.summary,
        }
        for b in BACKENDS
    ]
    foreign = [
        {"backend": name, "here": "yes", "from": point.value, "summary": "installed package"}
        for name, point in sorted(installed().items())
    ]
    return own + foreign


def _here(builtin: Builtin) -> str:
    """Whether it can run on this machine, as far as the files of its libraries tell."""
    if builtin.missing:
        return f"absent: {', '.join(builtin.missing)} ({builtin.remedy})"
    if builtin.lacks_kernels:
        return "absent: this torch has no GPU kernels"
    return "with a GPU" if builtin.device == "cuda" else "yes"


def _properties() -> Rows:
    from assay.properties.properties import PROPERTIES
    from assay.spec.claims import claim

    return [
        {"property": p.id, "ops": ", ".join(p.ops), "statement": claim(p.claim).sentence}
        for p in PROPERTIES
    ]


def _obligations() -> Rows:
    from assay.proofs.obligations import OBLIGATIONS

    return [
        {"obligation": o.id, "method": o.method, "earns": o.strength, "generality": o.generality}
        for o in OBLIGATIONS
    ]


def _profiles() -> Rows:
    from dataclasses import fields

    from assay.properties.profiles import PROFILES

    return [
        {
            field.name.replace("_", " "): "" if (v := getattr(p, field.name)) is None else str(v)
            for field in fields(p)
            if field.name != "share"
        }
        for p in PROFILES.values()
    ]


def _models() -> Rows:
    from assay.spec.models.catalogue import MODELS

    return [
        {
            "model": m.name,
            "presets": ", ".join(p.name for p in m.presets),
            "summary": m.summary,
        }
        for m in MODELS
    ]


def _faults() -> Rows:
    from assay.zoo.catalogue import FAULTS

    return [
        {
            "fault": f.name,
            "kind": f.kind,
            "hard": f.hard,
            "found by": ", ".join(f.claims),
            "as": f.verdict,
            "summary": f.summary,
        }
        for f in FAULTS
    ]


def _controls() -> Rows:
    from assay.zoo.catalogue import CONTROLS

    return [{"control": c.name, "from": c.target, "summary": c.summary} for c in CONTROLS]


LISTS: dict[str, Callable[[], Rows]] = {
    "ops": _ops,
    "claims": _claims,
    "backends": _backends,
    "properties": _properties,
    "obligations": _obligations,
    "profiles": _profiles,
    "models": _models,
    "faults": _faults,
    "controls": _controls,
}


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("what", choices=(*LISTS, "capsules"), help="what to list")
    parser.add_argument(
        "--backend",
        type=words,
        default=(),
        metavar="GLOB,...",
        help="capsules: of these backends only; each is loaded, which can take seconds",
    )
    parser.add_argument("--json", action="store_true", help="as JSON, on standard output")
    add_store(parser)


def _execute(args: Namespace) -> Status:
    if args.backend and args.what != "capsules":
        raise UsageError(f"--backend={','.join(args.backend)!r} is for capsules only")
    if args.what == "capsules":
        rows = capsules.rows(args.backend, args.directory, long=args.json)
    else:
        rows = LISTS[args.what]()
    if args.backend and not rows:
        raise UsageError(
            f"--backend={','.join(args.backend)!r} matches no backend; valid: assay list backends"
        )
    if args.json:
        console.block(json.dumps(rows, indent=1))
    else:
        columns = list(rows[0]) if rows else [args.what]
        console.table("", columns, [list(row.values()) for row in rows])
        if args.what == "capsules":
            console.line(capsules.LEGEND)
    return Status.HELD


COMMAND = Command(
    name="list",
    summary="list ops, claims, backends, capsules, properties, obligations, profiles, models, or "
    "the zoo's faults and controls",
    examples=(
        ("assay list claims", "every statement that must hold, in words"),
        ("assay list backends", "what can be run here, and what would install the rest"),
        ("assay list capsules --backend 'torch.*'", "who computes each op, and what speaks for it"),
        ("assay list faults", "what is planted to measure detection (assay zoo)"),
        ("assay list backends --json", "for a program to read"),
    ),
    arguments=_arguments,
    execute=_execute,
)
