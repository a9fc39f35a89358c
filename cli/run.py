"""``assay run``: a property campaign of one or more backends."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, BooleanOptionalAction, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from assay.cli.command import Command, Status, UsageError, add_store, check_output, words

if TYPE_CHECKING:
    from assay.properties.campaign import Options

_FILES = ("json", "junit", "html", "markdown")
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def duration(text: str) -> float:
    """Seconds from ``90``, ``90s``, ``5m`` or ``2h``.

    >>> duration("5m")
    300.0
    """
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "s")
    try:
        seconds = float(number) * _UNITS[unit]
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < float("inf"):
        raise ArgumentTypeError(f"{text!r} must be a positive time such as 90, 90s, 5m or 2h")
    return seconds


def natural(text: str) -> int:
    """A whole number of at least 0."""
    if not text.isdecimal():
        raise ArgumentTypeError(f"{text!r} must be a whole number of at least 0")
    return int(text)


def _arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "targets",
        nargs="*",
        metavar="TARGET",
        help="a built-in name (assay list backends), package.module:attr or file.py:attr",
    )
    parser.add_argument("--all", action="store_true", help="every built-in backend")
    what = parser.add_argument_group("what is checked")
    what.add_argument("--op", help="the op that a plain function computes (assay list ops)")
    what.add_argument("--ops", type=words, metavar="OP,...", help="only these ops")
    what.add_argument("--claims", type=words, metavar="GLOB,...", help="only claims that match")
    what.add_argument("--dtypes", type=words, metavar="DTYPE,...", help="only these element types")
    what.add_argument("--device", help="torch device string instead of the contract's")
    how = parser.add_argument_group("how much, and how")
    how.add_argument(
        "--profile", default="quick", help="quick, ci, nightly or soak (default: %(default)s)"
    )
    how.add_argument("--time", type=duration, metavar="T", help="whole budget: 90, 5m, 2h")
    how.add_argument("--seed", type=natural, help="makes the campaign repeatable")
    how.add_argument("--jobs", type=natural, metavar="N", help="worker processes")
    how.add_argument(
        "--isolate",
        action=BooleanOptionalAction,
        default=True,
        help="run each backend in its own process, so that a crash or hang is a finding",
    )
    how.add_argument(
        "--adversarial",
        action="store_true",
        help="kernels that may try to look right: keep them in the dark, and read their source",
    )
    how.add_argument(
        "--resume",
        action="store_true",
        help="go on with the newest unfinished campaign of the same configuration",
    )
    out = parser.add_argument_group("what comes out")
    out.add_argument("--known", type=Path, metavar="FILE", help="expected findings (known.toml)")
    for name in _FILES:
        out.add_argument(f"--{name}", type=Path, metavar="F", help=f"write the result as {name}")
    out.add_argument(
        "--show-contracts", action="store_true", help="print what each backend declares"
    )
    out.add_argument("--quiet", action="store_true", help="findings only")
    add_store(parser)


def _execute(args: Namespace) -> Status:
    from assay.cli import listener, outputs, summary
    from assay.properties import known as known_findings
    from assay.properties.campaign import run_campaign

    options = _options(args)
    for kind in _FILES:
        check_output(f"--{kind}", getattr(args, kind))
    known = known_findings.load(args.known) if args.known else known_findings.Known()
    with listener.listen(known, quiet=args.quiet) as listen:
        result = run_campaign(options, listen)
    result, stale = known_findings.apply(known, result)
    lines = tuple(str(entry) for entry in stale)
    status = summary.status(result, lines)
    if not args.quiet:
        summary.show(result, status, lines, contracts=args.show_contracts)
    for kind in _FILES:
        if path := getattr(args, kind):
            outputs.write(kind, path, result, status, lines, args.directory)
    return status


def _options(args: Namespace) -> Options:
    from assay.impl.registry import BACKENDS
    from assay.properties.campaign import Options

    if args.all and args.targets:
        raise UsageError(f"--all and targets {args.targets!r} exclude each other; give one of them")
    targets = tuple(b.name for b in BACKENDS) if args.all else tuple(args.targets)
    if not targets:
        raise UsageError(
            "no target; give a name (assay list backends), module:attr, file.py:attr or --all"
        )
    return Options(
        targets=targets,
        op=args.op,
        ops=args.ops,
        claims=args.claims,
        dtypes=args.dtypes,
        device=args.device,
        profile=args.profile,
        time=args.time,
        seed=args.seed,
        jobs=args.jobs,
        isolate=args.isolate,
        adversarial=args.adversarial,
        resume=args.resume,
        directory=args.directory,
    )


COMMAND = Command(
    name="run",
    summary="run a property campaign of backends",
    examples=(
        ("assay run my_kernels.py:MyBackend", "check a backend class of your own"),
        ("assay run my_kernels.py:my_attention --op attention", "check a plain function"),
        ("assay run --all --html report.html", "the built-in backends, with a report"),
        ("assay run torch.sdpa.flash --claims 'attention.*' --dtypes float32", "a part of it"),
        ("assay run generated.py:Kernel --adversarial", "a kernel that a model wrote"),
        ("assay run my.py:B --profile ci --known known.toml --junit out.xml", "a gate in CI"),
    ),
    arguments=_arguments,
    execute=_execute,
)
