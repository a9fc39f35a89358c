"""A model and a configuration of it, from the words of a command line."""

from __future__ import annotations

import difflib
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from dataclasses import Field, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from assay.cli.command import UsageError

if TYPE_CHECKING:
    from assay.spec.models.config import Config
    from assay.spec.models.model import Model, Preset


@dataclass(frozen=True)
class Chosen:
    """A model, a configuration of it, and what it is called."""

    model: Model
    title: str
    config: Config


def add_options(parser: ArgumentParser) -> None:
    """The model, its preset and its fields."""
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


def choose(name: str, preset: str | None, settings: Sequence[str]) -> Chosen:
    """What the words mean. UsageError names what does not exist or cannot be, and what is valid."""
    from assay.spec.models.catalogue import MODELS
    from assay.spec.models.config import ConfigError

    found = {m.name: m for m in MODELS}
    if name not in found:
        raise unknown("model", name, found)
    model = found[name]
    start = preset_of(model, preset) if preset is not None else model.presets[0]
    changes = _changes(model, settings)
    try:
        config = replace(start.config, **changes)
    except ConfigError as error:
        raise UsageError(str(error)) from error
    title = ", ".join([f"preset {start.name}", *(f"{n}={v!r}" for n, v in changes.items())])
    return Chosen(model, title, config)


def unknown(what: str, name: str, valid: Iterable[str]) -> UsageError:
    """The error for a name that is none of the valid ones."""
    names = list(valid)
    near = difflib.get_close_matches(name.lower(), names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ";"
    return UsageError(f"{what} {name!r} does not exist{hint} valid: {', '.join(names)}")


def preset_of(model: Model, name: str) -> Preset:
    """The preset of a model; UsageError names the valid ones."""
    try:
        return model.preset(name)
    except KeyError:
        raise unknown(f"preset of {model.name}", name, (p.name for p in model.presets)) from None


def _changes(model: Model, settings: Sequence[str]) -> dict[str, Any]:
    known = {f.name: f for f in fields(model.config)}
    changes = {}
    for setting in settings:
        name, equals, text = setting.partition("=")
        if not equals:
            raise UsageError(f"--set {setting!r} must be FIELD=VALUE; valid: {', '.join(known)}")
        if name.strip() not in known:
            raise unknown(f"field of {model.name}", name.strip(), known)
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
