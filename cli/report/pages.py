"""Renders a campaign as HTML or Markdown."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from assay.cli import store
from assay.cli.report import markdown, mathml, model, picture, plots
from assay.cli.versions import machine, own_version
from assay.properties.results import VERDICTS, Finding, Result

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

Script = Callable[[Finding], str]


def render(kind: str, result: Result, stale: Sequence[str], directory: Path) -> str:
    """The report as ``kind`` ("html" or "markdown"), with the proofs that ``directory`` keeps."""
    proofs, expired = store.load_proofs(directory), store.stale_proofs(directory)
    page = model.build(result, proofs, stale, expired)
    if kind == "markdown":
        return markdown.report(page)
    with scripts() as script:
        return html(page, script)


def html(page: model.Page, script: Script) -> str:
    """One file that loads nothing; ``script`` gives a reproducer. All foreign text is escaped."""
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
        breakable=_breakable,
        as_json=lambda data: json.dumps(data, indent=1, default=str),
        version=own_version(),
        machine=machine(),
    )


@contextmanager
def scripts() -> Iterator[Script]:
    """Makes reproducers; one that cannot be made here becomes a comment that says why."""
    from assay.properties.reproduce import writer

    with writer() as write:

        def careful(finding: Finding) -> str:
            try:
                return write(finding)
            except (
                Exception
            ) as error:  # foreign code that may have gone since: the rest is still worth having
                reason = " ".join(f"{type(error).__name__}: {error}".split())
                return f"# could not be written here: {reason}\n# assay repro {finding.id}\n"

        yield careful


def _visible(value: object) -> object:
    """Text without control characters, which browsers drop or misread; all else as it is."""
    if type(value) is not str:
        return value
    return "".join(
        c if c.isprintable() or c in "\n\t" else "\N{REPLACEMENT CHARACTER}" for c in value
    )


def _breakable(name: str) -> Markup:
    """A dotted name that a narrow column may break after its dots."""
    from markupsafe import Markup, escape

    return Markup(escape(name).replace(".", Markup(".<wbr>")))


def _environment() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    folder = resources.files("assay.cli.report").joinpath("templates")
    return Environment(
        autoescape=True,
        loader=FunctionLoader(lambda name: folder.joinpath(name).read_text(encoding="utf-8")),
        undefined=StrictUndefined,
        finalize=_visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
