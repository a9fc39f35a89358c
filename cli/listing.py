"""``assay list``: what there is to check, to check it against, and to check it with."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Callable

from assay.cli import console
from assay.cli.command import Command, Status

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

    own = [{"backend": b.name, "from": b.location, "summary": b.summary} for b in BACKENDS]
    foreign = [
        {"backend": name, "from": point.value, "summary": "installed package"}
        for name, point in sorted(installed().items())
    ]
    return own + foreign


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


LISTS: dict[str, Callable[[], Rows]] = {
    "ops": _ops,
    "claims": _claims,
    "backends": _backends,
    "properties": _properties,
    "obligations": _obligations,
    "profiles": _profiles,
    "models": _models,
}


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("what", choices=tuple(LISTS), help="what to list")
    parser.add_argument("--json", action="store_true", help="as JSON, on standard output")


def _execute(args: Namespace) -> Status:
    rows = LISTS[args.what]()
    if args.json:
        console.block(json.dumps(rows, indent=1))
    else:
        columns = list(rows[0]) if rows else [args.what]
        console.table("", columns, [list(row.values()) for row in rows])
    return Status.HELD


COMMAND = Command(
    name="list",
    summary="list ops, claims, backends, properties, obligations, profiles or models",
    examples=(
        ("assay list claims", "every statement that must hold, in words"),
        ("assay list backends --json", "for a program to read"),
    ),
    arguments=_arguments,
    execute=_execute,
)
