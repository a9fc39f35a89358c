"""Renders a campaign as HTML or Markdown."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from assay.cli import store
from assay.cli.outputs import finite
from assay.cli.report import markdown, mathml, model, picture, plots
from assay.cli.versions import machine, own_version
from assay.properties.results import VERDICTS, Finding, Result

if TYPE_CHECKING:
    from jinja2 import Environment

Script = Callable[[Finding], str]


def render(kind: str, result: Result, stale: Sequence[str], directory: Path) -> str:
    """The report as ``kind`` ("html" or "markdown"), with the proofs that ``directory`` keeps."""
    page = model.build(result, store.load_proofs(directory), stale)
    return markdown.report(page) if kind == "markdown" else html(page, reproducer)


def html(page: model.Page, script: Script) -> str:
    """One file that loads nothing; ``script`` gives a finding's reproducer. All foreign text is escaped."""
    template = _environment().get_template("report.html.jinja")
    counts = Counter(cell.verdict for cell in page.result.cells)
    return template.render(
        page=page,
        result=page.result,
        page_symbols=model.SYMBOLS,
        counts=[(v, model.SYMBOLS[v], counts[v]) for v in VERDICTS if counts[v]],
        plot=plots.scores(page.result.cells),
        mathml=mathml.mathml,
        picture=picture.picture,
        script=script,
        as_json=lambda data: json.dumps(finite(data), indent=1, default=str),
        version=own_version(),
        machine=machine(),
    )


@cache
def reproducer(finding: Finding) -> str:
    """The finding's stand-alone script; when it cannot be made here, the reason as a comment."""
    from assay.properties.reproduce import reproduce

    try:
        return reproduce(finding)
    except Exception as error:  # the backend is foreign code and may have gone since: the rest is still worth it
        reason = " ".join(str(error).split())
        return f"# could not be written here: {type(error).__name__}: {reason}\n# assay repro {finding.id}\n"


def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    folder = resources.files("assay.cli.report").joinpath("templates")
    return Environment(
        autoescape=True,
        loader=FunctionLoader(lambda name: folder.joinpath(name).read_text(encoding="utf-8")),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
