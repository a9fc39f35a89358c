"""The same from Python: ``assay.run`` and ``assay.assert_conforms``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from assay.impl.adapt import adapt
from assay.impl.protocol import Backend
from assay.properties.campaign import OptionError, Options, run_backend, run_campaign
from assay.properties.results import Result
from assay.spec.ops import OPS

Target = str | Backend | type[Backend] | Callable[..., Any]


def run(
    target: Target,
    *,
    op: str | None = None,
    ops: Sequence[str] | None = None,
    claims: Sequence[str] | None = None,
    dtypes: Sequence[str] | None = None,
    profile: str = "quick",
    seed: int | None = None,
    jobs: int | None = None,
    isolate: bool = True,
    adversarial: bool = False,
    directory: str | Path = ".assay",
) -> Result:
    """Run a campaign.

    A ``target`` in text ("torch.sdpa.flash", "my_kernels.py:MyBackend") runs as on the command
    line: in workers, journalled in ``directory``. A backend class, a backend object, or a function
    (with
    ``op``) runs in this process, without isolation and without journal. ``adversarial`` is for
    kernels that may try to look right, named by text.

    Raises OptionError and TargetError with the value, the rule and what is valid, and Unavailable
    where the backend cannot run on this machine.
    """
    if isinstance(target, str):
        options = Options(
            (target,),
            op=op,
            ops=_tuple(ops),
            claims=_tuple(claims),
            dtypes=_tuple(dtypes),
            profile=profile,
            seed=seed,
            jobs=jobs,
            isolate=isolate,
            adversarial=adversarial,
            directory=Path(directory),
        )
        return run_campaign(options)
    if adversarial:
        raise OptionError(
            f"adversarial=True, but {target!r} is in this process already; "
            "name it by text, as module:attr or file.py:attr"
        )
    return run_backend(
        _backend(target, op),
        ops=_tuple(ops),
        claims=_tuple(claims),
        dtypes=_tuple(dtypes),
        profile=profile,
        seed=seed or 0,
    )


def assert_conforms(target: Target, op: str | None = None, **options: Any) -> None:
    """Raise AssertionError, one line a finding, unless every claim holds. For your own test suite.

    Takes what ``run`` takes. A run in which no claim could be tested fails as well.
    """
    result = run(target, op=op, **options)
    lines = [
        f"{f.cell}: {f.message} [{f.summary}]" + (f" ({f.hint})" if f.hint else "")
        for f in result.findings
    ]
    if not any(cell.verdict == "held" for cell in result.cells):
        lines.append(
            "no claim was tested: "
            + "; ".join(sorted({c.reason for c in result.cells if c.reason}))
        )
    lines += list(result.notes)
    if lines:
        raise AssertionError(
            "\n".join([f"{len(result.findings)} findings in {len(result.cells)} cells:", *lines])
        )


def _tuple(values: Sequence[str] | None) -> tuple[str, ...] | None:
    return (values,) if isinstance(values, str) else None if values is None else tuple(values)


def _backend(target: Any, op: str | None) -> Backend:
    if isinstance(target, type) and issubclass(target, Backend):
        return target()
    if isinstance(target, Backend):
        return target
    if op is None:
        raise OptionError(
            f"op=None, but {target!r} is a plain function; valid: {', '.join(o.name for o in OPS)}"
        )
    return adapt(target, op)
