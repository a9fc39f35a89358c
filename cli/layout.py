"""``assay layout``: the state of a model, its counts and its costs; nothing is allocated."""

from __future__ import annotations

import difflib
import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from dataclasses import Field, asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from assay.cli import console
from assay.cli.command import Command, Status, UsageError
from assay.cli.run import natural

if TYPE_CHECKING:
    from assay.spec.models.config import Config
    from assay.spec.models.layout import Section
    from assay.spec.models.model import Model
    from assay.spec.models.summary import Figure


LIMIT = 10**300
"""Figures beyond it, which only grids of many axes reach, are refused: factors must be floats."""


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument("model", metavar="MODEL", help="a model (assay list models)")
    parser.add_argument("--preset", metavar="P", help="start from this one (default: the first)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="FIELD=VALUE",
        help="change one field, such as width=64, spatial=32,32 or feed_forward=none; repeatable",
    )
    parser.add_argument(
        "--batch", type=natural, default=1, metavar="B", help="rows for the costs (default: 1)"
    )
    parser.add_argument(
        "--against", metavar="PRESET", help="show by what factor each figure grows from this preset"
    )
    parser.add_argument("--json", action="store_true", help="as JSON, on standard output")


@dataclass(frozen=True)
class _Subject:
    """A model, a configuration of it, and what it is called."""

    model: Model
    title: str
    config: Config
    batch: int

    @property
    def figures(self) -> tuple[Figure, ...]:
        from assay.spec.models.summary import figures

        return figures(self.model, self.config, self.batch)


def _execute(args: Namespace) -> Status:
    if args.batch < 1:
        raise UsageError(f"--batch={args.batch} must be a whole number; valid: 1 or more")
    subject = _subject(args)
    other = None
    if args.against is not None:
        other = replace(
            subject, title=args.against, config=_preset(subject.model, args.against).config
        )
    for figure in subject.figures:
        if figure.value > LIMIT:
            raise UsageError(f"{figure.name} would be beyond {LIMIT:.0e}; valid: smaller sizes")
    (_print_json if args.json else _print)(subject, other)
    return Status.HELD


# -- From words to a configuration


def _unknown(what: str, name: str, valid: Iterable[str]) -> UsageError:
    names = list(valid)
    near = difflib.get_close_matches(name.lower(), names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ";"
    return UsageError(f"{what} {name!r} does not exist{hint} valid: {', '.join(names)}")


def _subject(args: Namespace) -> _Subject:
    from assay.spec.models.catalogue import MODELS
    from assay.spec.models.config import ConfigError

    found = {m.name: m for m in MODELS}
    if args.model not in found:
        raise _unknown("model", args.model, found)
    model = found[args.model]
    preset = _preset(model, args.preset) if args.preset is not None else model.presets[0]
    changes = _changes(model, args.settings)
    try:
        config = replace(preset.config, **changes)
    except ConfigError as error:
        raise UsageError(str(error)) from error
    title = ", ".join([f"preset {preset.name}", *(f"{n}={v!r}" for n, v in changes.items())])
    return _Subject(model, title, config, args.batch)


def _preset(model: Model, name: str) -> Any:
    try:
        return model.preset(name)
    except KeyError:
        raise _unknown(f"preset of {model.name}", name, (p.name for p in model.presets)) from None


def _changes(model: Model, settings: Sequence[str]) -> dict[str, Any]:
    known = {f.name: f for f in fields(model.config)}
    changes = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise UsageError(f"--set {setting!r} must be FIELD=VALUE; valid: {', '.join(known)}")
        if name.strip() not in known:
            raise _unknown(f"field of {model.name}", name.strip(), known)
        changes[name.strip()] = _value(known[name.strip()], text.strip())
    return changes


def _value(field: Field[Any], text: str) -> Any:
    """``text`` as the field's type; unchanged where it is none, so that its rule says why."""
    kind = str(field.type)
    if kind.endswith(" | None") and text.lower() == "none":
        return None
    if kind.startswith("bool"):
        return {"true": True, "false": False}.get(text.lower(), text)
    try:
        if kind.startswith("tuple"):
            return tuple(int(part) for part in text.strip("()").split(",") if part.strip())
        if kind.startswith("float"):
            return float(text)
        return int(text) if kind.startswith("int") else text
    except ValueError:
        return text


# -- What is printed


def _print(subject: _Subject, other: _Subject | None) -> None:
    model, config = subject.model, subject.config
    console.line(f"{model.name}: {model.summary}; {subject.title}")
    console.line(" ".join(f"{n}={_short(v)}" for n, v in asdict(config).items()))
    _print_parameters(subject)
    _print_counts(subject)
    _print_costs(subject)
    if other is not None:
        _print_growth(subject, other)


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


def _print_counts(subject: _Subject) -> None:
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
