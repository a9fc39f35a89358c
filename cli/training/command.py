"""``assay train``: a model is trained in seconds, by steps and to losses that theory speaks of."""

from __future__ import annotations

import math
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from pathlib import Path

from assay.cli import configuration
from assay.cli.command import Command, Status, check_output
from assay.cli.run import natural


def positive(text: str) -> float:
    """A finite number above 0.

    >>> positive("1e-3")
    0.001
    """
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < math.inf:
        raise ArgumentTypeError(f"{text!r} must be a number above 0, such as 0.001")
    return value


def _arguments(parser: ArgumentParser) -> None:
    configuration.add_options(parser)
    how = parser.add_argument_group("how it is trained")
    how.add_argument("--steps", type=natural, metavar="N", help="steps of the optimizer")
    how.add_argument("--batch", type=natural, metavar="B", help="examples of a step")
    how.add_argument("--lr", type=positive, metavar="R", help="learning rate")
    how.add_argument(
        "--data-file",
        type=Path,
        metavar="FILE",
        help="a text in UTF-8 for a language model, else an .npz file of inputs and targets",
    )
    how.add_argument(
        "--seed", type=natural, default=0, metavar="S", help="of everything drawn (default: 0)"
    )
    parser.add_argument("--log", type=Path, metavar="FILE", help="write the result as JSON")


def _execute(args: Namespace) -> Status:
    from assay.cli.training import checks, learning, output
    from assay.cli.training.plan import contracts_of, plan, problem_of

    check_output("--log", args.log)
    run = plan(args)
    problem = problem_of(run, args.data_file)
    contracts = contracts_of(run)
    step = checks.check_step(run, contracts[-1].contract)
    output.show_plan(run, problem, contracts, step)
    if not step.held:
        return Status.FINDINGS
    outcome = learning.learn(run, problem)
    output.show_outcome(run, problem, outcome)
    if args.log is not None:
        args.log.write_text(output.log(run, problem, step, outcome), encoding="utf-8")
    return Status.HELD if outcome.met else Status.FINDINGS


COMMAND = Command(
    name="train",
    summary="train a small model, and compare its steps and losses with theory",
    examples=(
        ("assay train char_gpt", "a transformer learns a generated text"),
        ("assay train fno --preset burgers_rfft --steps 100", "an operator, of Burgers' equation"),
        ("assay train lstm --data-file corpus.txt --set vocabulary=90", "a text of your own"),
        ("assay train vit --seed 1 --log vit.json", "and the result for a program to read"),
    ),
    arguments=_arguments,
    execute=_execute,
)
