"""Running a step over a sequence: (s_t, y_t) = step(s_{t-1}, x_t), and the ways to split the run.

A state and an input may be anything (arrays, tuples, terms of a solver): nothing here looks at
them. One function serves every recurrent model, so that one theorem and one property do as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

State = TypeVar("State")
In = TypeVar("In")
Out = TypeVar("Out")
Item = TypeVar("Item")

Step = Callable[[State, In], tuple[State, Out]]


def run(step: Step[State, In, Out], state: State, inputs: Sequence[In]) -> tuple[list[Out], State]:
    """All outputs, and the state after the last input.

    inputs have time first: a list, or an array whose first axis is time. An empty sequence gives no
    outputs and the state that it was given. Source: the left fold with a history (``mapAccumL``),
    R. Bird and P. Wadler, "Introduction to Functional Programming" (1988), section 3.5.

    >>> run(lambda total, x: (total + x, total + x), 0, [1, 2, 5])
    ([1, 3, 8], 8)
    """
    outputs = []
    for x in inputs:
        state, y = step(state, x)
        outputs.append(y)
    return outputs, state


def run_with_history(
    step: Step[State, In, Out], state: State, inputs: Sequence[In]
) -> tuple[list[Out], list[State]]:
    """All outputs, and all states: the one before the first input, then one after each.

    This is what a gradient through time needs: states[t] is what step t started from.

    >>> run_with_history(lambda total, x: (total + x, -x), 0, [1, 2, 5])
    ([-1, -2, -5], [0, 1, 3, 8])
    """

    def remembering(now: State, x: In) -> tuple[State, tuple[Out, State]]:
        after, y = step(now, x)
        return after, (y, after)

    pairs, _ = run(remembering, state, inputs)
    return [y for y, _ in pairs], [state, *(after for _, after in pairs)]


def run_chunked(
    step: Step[State, In, Out], state: State, inputs: Sequence[In], chunk: int
) -> tuple[list[Out], State]:
    """``run``, ``chunk`` inputs at a time: each chunk starts from the state of the one before.

    The last chunk may be shorter. ValueError for a chunk that holds nothing.

    >>> run_chunked(lambda total, x: (total + x, total + x), 0, [1, 2, 5], chunk=2)
    ([1, 3, 8], 8)
    """
    if chunk < 1:
        raise ValueError(f"chunk={chunk!r} must be at least 1 input")
    outputs: list[Out] = []
    for start in range(0, len(inputs), chunk):
        more, state = run(step, state, inputs[start : start + chunk])
        outputs += more
    return outputs, state


def run_packed(
    step: Step[State, In, Out], state: State, inputs: Sequence[In], starts: Sequence[bool]
) -> tuple[list[Out], State]:
    """Several sequences laid end to end: where ``starts`` is True, the state is ``state`` again.

    ValueError unless there is one truth value for each input.

    >>> run_packed(lambda total, x: (total + x, total + x), 0, [1, 2, 5], [True, False, True])
    ([1, 3, 5], 5)
    """
    if len(starts) != len(inputs):
        raise ValueError(f"len(starts)={len(starts)} must equal len(inputs)={len(inputs)}")
    first = state

    def resetting(now: State, x: tuple[In, bool]) -> tuple[State, Out]:
        return step(first if x[1] else now, x[0])

    return run(resetting, state, list(zip(inputs, starts, strict=True)))


def scan_tree(combine: Callable[[Item, Item], Item], items: Sequence[Item]) -> list[Item]:
    """x_0, x_0 . x_1, x_0 . x_1 . x_2, ... in 2 log2 n rounds, where ``combine`` is associative.

    combine(earlier, later). Neighbours are joined, the half as long sequence is scanned, and its
    results are spread: about 2 n calls. Source: G. Blelloch, "Prefix sums and their applications"
    (1990), section 1.3; R. Ladner and M. Fischer, "Parallel prefix computation" (1980).

    >>> scan_tree(lambda earlier, later: earlier + later, ["a", "b", "c", "d", "e"])
    ['a', 'ab', 'abc', 'abcd', 'abcde']
    """
    if len(items) <= 1:
        return list(items)
    pairs = [combine(items[i], items[i + 1]) for i in range(0, len(items) - 1, 2)]
    odd = scan_tree(combine, pairs)
    even = [combine(odd[i // 2 - 1], items[i]) for i in range(2, len(items), 2)]
    result = [items[0]] * len(items)
    result[1::2], result[2::2] = odd, even
    return result


def fold_bracketed(
    combine: Callable[[Item, Item], Item], items: Sequence[Item], split: Callable[[int], int]
) -> Item:
    """x_0 . x_1 . ... . x_{n-1} with the brackets that ``split`` chooses: 0 < split(n) < n.

    ``split`` n - 1 is the sequential order, 1 its reverse, n // 2 a balanced tree. ValueError for
    no items, or a split that leaves one side empty.

    >>> fold_bracketed(lambda a, b: f"({a}{b})", "abcd", lambda n: n // 2)
    '((ab)(cd))'
    """
    if not items:
        raise ValueError("items=[] must hold at least one: an empty product has no bracketing")
    if len(items) == 1:
        return items[0]
    at = split(len(items))
    if not 0 < at < len(items):
        raise ValueError(f"split({len(items)})={at} must lie between 1 and {len(items) - 1}")
    return combine(
        fold_bracketed(combine, items[:at], split), fold_bracketed(combine, items[at:], split)
    )
