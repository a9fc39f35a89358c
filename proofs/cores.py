"""All minimal contradictions among named facts: sets that cannot hold together while every smaller
one can.

Source: M. Liffiton and coauthors, "Fast, flexible MUS enumeration" (2016), the MARCO algorithm.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import z3


def minimal_cores(facts: Mapping[str, z3.BoolRef]) -> Iterator[frozenset[str]]:
    """Each minimal set of facts that contradict each other, once.

    >>> x = z3.Int("x")
    >>> facts = {"a": x > 2, "b": x < 1, "c": x == 0}
    >>> sorted(sorted(core) for core in minimal_cores(facts))
    [['a', 'b'], ['a', 'c']]
    """
    picked = {name: z3.Bool(f"pick {name}") for name in facts}
    solver, unexplored = z3.Solver(), z3.Solver()
    for name, fact in facts.items():
        solver.add(z3.Implies(picked[name], fact))

    def possible(names: frozenset[str]) -> bool:
        result = solver.check(*(picked[n] for n in names))
        if result == z3.unknown:
            raise ValueError(f"names={sorted(names)!r} could not be decided")
        return bool(result == z3.sat)

    while unexplored.check() == z3.sat:
        model = unexplored.model()
        seed = frozenset(
            n for n, p in picked.items() if z3.is_true(model.eval(p, model_completion=True))
        )
        if possible(seed):
            for name in facts.keys() - seed:
                if possible(seed | {name}):
                    seed |= {name}
            # Nothing inside a set that can hold is a contradiction.
            unexplored.add(z3.Or(*(picked[n] for n in facts.keys() - seed)))
            continue
        for name in sorted(seed):
            if not possible(seed - {name}):
                seed -= {name}
        unexplored.add(z3.Not(z3.And(*(picked[n] for n in seed))))
        yield seed
