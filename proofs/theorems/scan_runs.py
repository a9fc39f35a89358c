"""Runs of an arbitrary step over sequences of any length: prefixes, streams, chunks, histories,
packed sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import z3

from assay.proofs.induction import by_induction, folds_of, starts
from assay.proofs.mutants import mutant
from assay.proofs.obligation import Body, Case, Obligation, Premise, Query, Step, Twin
from assay.proofs.scalars.courses import COURSE, INPUT, STATE, Inputs, inputs, joined, step
from assay.spec.scans.runner import run, run_chunked, run_packed, run_with_history

Runner = Callable[..., Any]
H = z3.Const("h", STATE)
X, Y, Z = (z3.Const(name, INPUT) for name in "xyz")
J = z3.Int("j")


class Split:
    """Two stretches of any lengths, A and then B, and both as one stretch C, from one state."""

    def __init__(self, start: z3.ExprRef = H) -> None:
        self.first, self.second = inputs("A"), inputs("B")
        self.whole = joined("C", self.first, self.second)
        self.axes = tuple(x.axis for x in (self.first, self.second, self.whole))
        self.n, self.m, both = (axis.length for axis in self.axes)
        self.together = self.whole.states(start)
        self.before = self.first.states(start)
        self.after = self.second.states(self.before.at(self.n))
        self.sizes = Premise(
            r"n_A, n_B \ge 0,\; n_C = n_A + n_B",
            z3.And(self.n >= 0, self.m >= 0, both == self.n + self.m),
            "definition",
        )
        self.witness = {"nA": 2, "nB": 2, "nC": 4, "j": 1}

    def at_first(self, m: Any) -> z3.BoolRef:
        """What the whole run has done after m inputs of A is what a run of A alone has done."""
        among = z3.And(J >= 0, m > J)
        same = self.together.at(J) == self.before.at(J)
        return z3.And(self.together.at(m) == self.before.at(m), z3.Implies(among, same))

    def at_second(self, m: Any) -> z3.BoolRef:
        """And after all of A and m inputs of B, a run of B from the state after A."""
        among, after = z3.And(self.n <= J, m + self.n > J), self.after
        same = self.together.at(J) == after.at(J - self.n)
        agrees = self.together.at(self.n + m) == after.at(z3.IntVal(0) + m)
        return z3.And(agrees, z3.Implies(among, same))

    def lemmas(self) -> Iterator[Query | Premise]:
        """Both, by induction over the inputs of A and of B: queries, each with its lemma last."""
        first, second, whole = self.axes
        known = [self.sizes, *starts(whole), *starts(first), *starts(second)]
        agrees: list[Premise] = []
        for name, axis, holds, offset in (
            ("the first part", first, self.at_first, 0),
            ("the second part", second, self.at_second, self.n),
        ):
            queries, lemma = by_induction(
                name,
                axis,
                holds,
                pointwise=partial(self._unfolded, offset),
                premises=[*known, *agrees],
                witness=self.witness,
                others=self.axes,
            )
            yield from queries
            agrees.append(lemma)
        yield from agrees

    def _unfolded(self, offset: Any, k: Any) -> Sequence[Premise]:
        f, at = self.together, offset + k
        return [Premise("one more of both", f.at(at + 1) == f.step(f.at(at), at), "definition")]

    def query(self, name: str, goal: z3.BoolRef, lemmas: Sequence[Premise]) -> Query:
        """A query about index j of both parts."""
        inside = Premise(r"0 \le j", J >= 0, "definition")
        return Query(name, goal, (self.sizes, inside, *lemmas), self.witness, folds_of(*self.axes))


def _proved(split: Split) -> tuple[list[Query], list[Premise]]:
    steps = list(split.lemmas())
    lemmas = [s for s in steps if isinstance(s, Premise)]
    return [s for s in steps if isinstance(s, Query)], lemmas


def prefix() -> Iterator[Query]:
    """The outputs of A are the same, whatever is appended to it."""
    split = Split()
    queries, lemmas = _proved(split)
    yield from queries
    (alone,), _ = run(step, H, [split.first])
    (both,), _ = run(step, H, [split.whole])
    goal = z3.Implies(split.n > J, both.at(J) == alone.at(J))
    yield split.query("output j", goal, lemmas)


def prefix_of(runner: Runner) -> Iterator[Query]:
    """Two inputs and the first of them alone, for a given runner."""
    alone, both = runner(step, H, [X])[0], runner(step, H, [X, Y])[0]
    yield Query("two inputs", both[0] == alone[0])


def streaming() -> Iterator[Step]:
    """A run of A and, from its state, a run of B give what one run of both gives."""
    split = Split()
    queries, lemmas = _proved(split)
    yield from queries
    (early,), state = run(step, H, [split.first])
    (late,), end = run(step, state, [split.second])
    (both,), last = run(step, H, [split.whole])
    parts = z3.If(split.n > J, early.at(J), late.at(J - split.n))
    goal = z3.Implies(split.whole.axis.length > J, both.at(J) == parts)
    yield split.query("output j", goal, lemmas)
    yield split.query("the state", end == last, lemmas)
    yield from _alike("in one loop", run(step, H, [split.first, split.second]), early, late, end)


def streaming_of(onward: Callable[[z3.ExprRef, z3.ExprRef], z3.ExprRef]) -> Iterator[Query]:
    """Two inputs, the second run from a state that is chosen from the first and the last one."""
    both = run(step, H, [X, Y])
    state = run(step, H, [X])[1]
    later = run(step, onward(H, state), [Y])
    yield Query("two inputs", z3.And(both[0][1] == later[0][0], both[1] == later[1]))


def _alike(name: str, got: tuple[list[Any], Any], *want: Any) -> Iterator[Case]:
    """The very same terms: outputs one by one, and the state."""
    outputs, state = got
    same = len(outputs) + 1 == len(want) and all(
        _term(a).eq(_term(b)) for a, b in zip((*outputs, state), want, strict=True)
    )
    yield Case(name, same)


def _term(x: Any) -> z3.ExprRef:
    return x if z3.is_expr(x) else x.at(J)


def chunked() -> Iterator[Step]:
    """After chunks that hold A and agree with a run of A, a chunk B makes it a run of both."""
    split = Split()
    queries, lemmas = _proved(split)
    yield from queries
    outputs, state = run_chunked(step, H, [split.first, split.second], 1)
    _, last = run(step, H, [split.whole])
    yield from _alike("the outputs", (outputs, state), *_flat(run, [split.first, split.second]))
    yield split.query("the state", state == last, lemmas)
    yield Query("no chunk", run_chunked(step, H, [], 1)[1] == H)


def _flat(runner: Runner, xs: list[Any], **options: Any) -> list[Any]:
    outputs, state = runner(step, H, xs, **options)
    return [*outputs, state]


def chunks_listed(chunk_runner: Runner) -> Iterator[Case]:
    """Every chunk size of every length: the very terms of one run."""
    for n in range(9):
        xs = [z3.Const(f"x{i}", INPUT) for i in range(n)]
        for size in range(1, n + 2):
            got = chunk_runner(step, H, xs, size)
            yield from _alike(f"{n} inputs by {size}", got, *_flat(run, xs))


def history(runner: Runner) -> Iterator[Case]:
    """States[t] is what a run of the first t gives, and the outputs are the run's."""
    first, second = inputs("A"), inputs("B")
    for xs in ([], [X], [X, Y], [first], [first, X], [first, X, second], [X, first, second, Y]):
        outputs, states = runner(step, H, xs)
        want = [run(step, H, xs[:t])[1] for t in range(len(xs) + 1)]
        name = " ".join("any number" if isinstance(x, Inputs) else "one" for x in xs)
        yield from _alike(f"states of {name or 'none'}", (states, H), *want, H)
        yield from _alike(f"outputs of {name or 'none'}", (outputs, H), *_flat(run, xs)[:-1], H)


def packed() -> Iterator[Case]:
    """Whatever came before a start, what follows it is a run from the first state."""
    past, rest, other = inputs("W"), inputs("A"), inputs("B")
    for xs in ([X], [X, rest]):
        starts_at = [True] + [False] * (len(xs) - 1)
        alone = _flat(run, xs)
        outputs, state = run_packed(step, H, [past, *xs], [False, *starts_at])
        yield from _alike(f"behind anything, {len(xs)}", (outputs[1:], state), *alone)
        both = [*xs, Y, other]
        outputs, state = run_packed(step, H, both, [*starts_at, True, False])
        ends = _flat(run, [Y, other])
        yield from _alike(f"before another, {len(xs)}", (outputs, state), *alone[:-1], *ends)


def packed_of(runner: Runner) -> Iterator[Query]:
    """Two sequences of one input each, for a given runner."""
    outputs, _ = runner(step, H, [X, Y], [True, True])
    yield Query("the second", outputs[1] == run(step, H, [Y])[0][0])


BACKWARDS = mutant(run, "for x in inputs:", "for x in list(inputs)[::-1]:")
FORGETFUL = mutant(run_chunked, "more, state = run(step, state,", "more, last = run(step, state,")
LATE = mutant(run_with_history, "[state, *(after", "[*(after")
CONTINUED = mutant(run_packed, "step(first if x[1] else now, x[0])", "step(now, x[0])")
ANY_STEP = "any step, of any states, inputs and outputs: bit for bit, in any arithmetic"


def _obligation(
    name: str, variant: str, statement: str, generality: str, body: Body, twin: Twin
) -> Obligation:
    bounded = generality.startswith("up to")
    return Obligation(
        f"{name}/{variant}",
        name,
        statement,
        f"{generality}; {ANY_STEP}",
        "bounded" if bounded else "proved",
        "z3",
        body,
        twin,
        () if bounded else COURSE,
    )


PREFIX = (
    r"f(h, x \frown y)_{\le |x|} = f(h, x)",
    "any number of inputs before and after",
    prefix,
    Twin("the loop starts at the end", partial(prefix_of, BACKWARDS)),
)
STREAMING = (
    r"f(h, x \frown y) = f(h, x) \frown f(h_{|x|}, y)",
    "any number of inputs in either part",
    streaming,
    Twin("the second part starts from the first state", partial(streaming_of, lambda h, s: h)),
)
OBLIGATIONS: tuple[Obligation, ...] = (
    _obligation("scan.prefix", "any-step", *PREFIX),
    _obligation("scan.streaming", "any-step", *STREAMING),
    _obligation(
        "scan.chunk_independent",
        "any-step",
        r"\operatorname{chunked}(h, x \frown c) = f(h, x) \frown f(h_{|x|}, c) = f(h, x \frown c)",
        "by induction over the chunks: any number of inputs in those before and in the next one",
        chunked,
        Twin("each chunk starts from the first state", partial(chunks_listed, FORGETFUL)),
    ),
    _obligation(
        "scan.chunk_independent",
        "small",
        r"\operatorname{chunked}_c(h, x) = f(h, x)",
        "up to 8 inputs, every chunk size up to one more than them",
        partial(chunks_listed, run_chunked),
        Twin("each chunk starts from the first state", partial(chunks_listed, FORGETFUL)),
    ),
    _obligation(
        "scan.history",
        "any-step",
        r"s_0 = h,\quad s_t = f(h, x_{\le t})",
        "any number of inputs between the states that are looked at",
        partial(history, run_with_history),
        Twin("the state before the first input is left out", partial(history, LATE)),
    ),
    _obligation(
        "scan.packed_reset",
        "any-step",
        r"f(w \frown x \frown y; \text{reset}) = \dots \frown f(h, x) \frown f(h, y)",
        "any number of inputs in each sequence, whatever came before",
        packed,
        Twin("the state is not reset", partial(packed_of, CONTINUED)),
    ),
)
