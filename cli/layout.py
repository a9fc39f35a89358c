"""``assay layout``: the state of a model, its counts and its costs; nothing is allocated."""

from __future__ import annotations

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from assay.cli import configuration, console
from assay.cli.command import Command, Status, UsageError
from assay.cli.configuration import Chosen
from assay.cli.run import natural

if TYPE_CHECKING:
    from assay.spec.models.layout import Section
    from assay.spec.models.summary import Figure


LIMIT = 10**300
"""Figures beyond it, which only grids of many axes reach, are refused: factors must be floats."""


def _arguments(parser: ArgumentParser) -> None:
    configuration.add_options(parser)
    parser.add_argument(
        "--batch", type=natural, default=1, metavar="B", help="rows for the costs (default: 1)"
    )
    parser.add_argument(
        "--against", metavar="PRESET", help="show by what factor each figure grows from this preset"
    )
    parser.add_argument("--json", action="store_true", help="as JSON, on standard output")


@dataclass(frozen=True)
class _Subject(Chosen):
    """The same, and how many rows its costs are for."""

    batch: int

    @property
    def figures(self) -> tuple[Figure, ...]:
        from assay.spec.models.summary import figures

        return figures(self.model, self.config, self.batch)


def _execute(args: Namespace) -> Status:
    if args.batch < 1:
        raise UsageError(f"--batch={args.batch} must be a whole number; valid: 1 or more")
    chosen = configuration.choose(args.model, args.preset, args.settings)
    subject = _Subject(chosen.model, chosen.title, chosen.config, args.batch)
    other = None
    if args.against is not None:
        config = configuration.preset_of(subject.model, args.against).config
        other = replace(subject, title=args.against, config=config)
    for figure in subject.figures:
        if figure.value > LIMIT:
            raise UsageError(f"{figure.name} would be beyond {LIMIT:.0e}; valid: smaller sizes")
    (_print_json if args.json else _print)(subject, other)
    return Status.HELD


# -- What is printed


def _print(subject: _Subject, other: _Subject | None) -> None:
    print_title(subject)
    _print_parameters(subject)
    print_counts(subject)
    _print_costs(subject)
    if other is not None:
        _print_growth(subject, other)


def print_title(subject: Chosen) -> None:
    """The model, and every field of its configuration."""
    console.line(f"{subject.model.name}: {subject.model.summary}; {subject.title}")
    console.line(" ".join(f"{n}={_short(v)}" for n, v in asdict(subject.config).items()))


def _short(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _shape(sizes: Sequence[int]) -> str:
    return " x ".join(str(n) for n in sizes) or "scalar"


def _paths(section: Section) -> list[str]:
    """Paths with the layers that they stand for in place of ``*``, where those are not all."""
    first, last = section.first, section.first + section.times - 1
    layers = str(first) if first == last else f"{first}-{last}" if first else "*"
    return [path.replace("*", layers) for path in section.paths]


def _print_parameters(subject: _Subject) -> None:
    rows = [
        (
            path,
            _shape(p.shape),
            f"{p.size:,}",
            "" if section.repeat is None else f"{section.repeat:,}",
            f"{section.times * p.size:,}",
            f"{p.init}" if p.trainable else f"{p.init}, not trained",
        )
        for section in subject.model.layout(subject.config)
        if section.times
        for path, p in zip(_paths(section), section.parameters, strict=True)
    ]
    columns = ("parameter", "shape", "scalars", "times", "in all", "starts at")
    console.table("", columns, rows, right=columns[2:5])


def print_counts(subject: Chosen) -> None:
    """How many numbers are stored and trained, by the closed form and by group."""
    from assay.spec.models import layout as layouts
    from assay.spec.models.closed_form import formula, trainable_count

    layout, terms = subject.model.layout(subject.config), subject.model.terms(subject.config)
    console.line(
        f"stored: {layouts.stored(layout):,} scalars in {layouts.tensors(layout):,} tensors; "
        f"trainable: {layouts.trainable(layout):,}"
    )
    console.line(f"closed form: {formula(terms)} = {trainable_count(terms):,}")
    for term in terms:
        if not term.trainable:
            console.line(f"stored besides: {term.text} = {term.value:,}")
    groups = layouts.by_group(layout).items()
    console.line("by group: " + ", ".join(f"{name} {count:,}" for name, count in groups))


def _print_costs(subject: _Subject) -> None:
    steps = subject.model.steps(subject.config, subject.batch)
    rows = [
        (
            s.name,
            s.kind,
            _shape(s.writes),
            f"{s.repeat:,}",
            f"{s.forward_flops:,}",
            f"{s.training_flops:,}",
        )
        for s in steps
        if s.flops and s.repeat
    ]
    columns = ("step", "kind", "writes", "times", "forward FLOPs", "with backward")
    console.line()
    console.line(f"Costs at batch {subject.batch}; elementwise work counts 0")
    console.table("", columns, rows, right=columns[3:])
    for figure in subject.figures[2:]:
        console.line(f"{figure.name}: {_amount(figure)}")


def _amount(figure: Figure) -> str:
    text = f"{figure.value:,} {figure.unit}".strip()
    if figure.unit != "bytes" or figure.value < 1024:
        return text
    power = min((figure.value.bit_length() - 1) // 10, 6)
    return f"{text} ({figure.value / 1024**power:.4g} {' KMGTPE'[power]}iB)"


def _growth(new: int, old: int) -> str:
    """The factor from ``old`` to ``new``.

    >>> _growth(10_788_929, 30_017), _growth(3, 2), _growth(1, 0)
    ('359x', '1.5x', '')
    """
    if not old:
        return ""
    factor = new / old
    return f"{factor:,.0f}x" if factor >= 1000 else f"{factor:.3g}x"


def _print_growth(subject: _Subject, other: _Subject) -> None:
    before = {f.name: f.value for f in other.figures}
    rows = [
        (
            f"{f.name} ({f.unit})" if f.unit else f.name,
            f"{before[f.name]:,}",
            f"{f.value:,}",
            _growth(f.value, before[f.name]),
        )
        for f in subject.figures
        if f.name in before
    ]
    console.line()
    console.line(f"Against preset {other.title}")
    columns = ("figure", other.title, "here", "growth")
    console.table("", columns, rows, right=columns[1:])


def _print_json(subject: _Subject, other: _Subject | None) -> None:
    from assay.spec.models.closed_form import formula, trainable_count
    from assay.spec.models.layout import by_group, tensors

    layout, terms = subject.model.layout(subject.config), subject.model.terms(subject.config)
    answer: dict[str, Any] = {
        "model": subject.model.name,
        "title": subject.title,
        "config": asdict(subject.config),
        "batch": subject.batch,
        "parameters": [
            {
                "path": path,
                "shape": p.shape,
                "times": section.times,
                "first": section.first,
                "group": p.group,
                "trainable": p.trainable,
                "starts_at": str(p.init),
            }
            for section in layout
            if section.times
            for path, p in zip(section.paths, section.parameters, strict=True)
        ],
        "tensors": tensors(layout),
        "groups": by_group(layout),
        "closed_form": {"formula": formula(terms), "value": trainable_count(terms)},
        "steps": [asdict(s) for s in subject.model.steps(subject.config, subject.batch)],
        "figures": [asdict(f) for f in subject.figures],
    }
    if other is not None:
        before = {f.name: f.value for f in other.figures}
        answer["against"] = {
            "preset": other.title,
            "figures": [asdict(f) for f in other.figures],
            "growth": {
                f.name: f.value / before[f.name] for f in subject.figures if before.get(f.name)
            },
        }
    console.block(json.dumps(answer, indent=1))


COMMAND = Command(
    name="layout",
    summary="show the parameters, counts and costs of a model, without allocating anything",
    examples=(
        ("assay layout char_gpt", "the smallest preset"),
        ("assay layout char_gpt --preset karpathy --against smoke", "and how much larger it is"),
        ("assay layout gpt --set layers=48 --set width=1600 --set heads=25", "other sizes"),
        ("assay layout fno --preset burgers_rfft --json", "for a program to read"),
    ),
    arguments=_arguments,
    execute=_execute,
)
