"""A session of a backend that may try to look right instead of being right.

Everything is decided on this side of the line to its worker: when it is called, how often, and what
it left of its inputs.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from types import TracebackType

import numpy as np

from assay.impl.buffers import Block
from assay.impl.call import Call, Reply
from assay.impl.contract import Contract
from assay.impl.description import Description
from assay.impl.loading import Target
from assay.impl.protocol import Backend
from assay.impl.worker_session import WorkerSession

HIDDEN_SIZES = (34, 210)
"""Between which the secret sizes lie: beyond what every campaign draws from."""

SECRETS = 2
"""How many of them there are."""

ROUNDS = 2
"""How often each call is made."""

DECOYS = 2
"""Calls of earlier batches that are made in between, at most."""

_REMEMBERED = 8
_DECOY_BYTES = 1 << 16
_USUAL_BLOCK = 16


@dataclass(frozen=True)
class Adversary:
    """How a backend is kept in the dark.

    seed    of the order of calls and of the secret sizes; never told to the worker
    closed  absolute paths of folders that it must not read
    """

    seed: int
    closed: tuple[str, ...]


class AdversarialSession:
    """Each call of a batch is made twice, in an order of its own, with others in between whose
    replies do not count: calls of earlier batches, and of the same shapes with other values.

    Inputs are compared here with what the call left of them, not in the worker.
    """

    def __init__(
        self, target: Target | Backend, adversary: Adversary, *, timeout: float, memory: int | None
    ) -> None:
        self._random = random.Random(f"calls {adversary.seed}")
        self._worker = WorkerSession(
            target, timeout=timeout, memory=memory, closed=adversary.closed
        )
        self._earlier: deque[Call] = deque(maxlen=_REMEMBERED)
        described = self._worker.description
        contract = with_secret_sizes(described.contract, adversary.seed)
        self._description = replace(described, contract=contract)

    @property
    def description(self) -> Description:
        """What the backend declares, and as block sizes some that nobody declared."""
        return self._description

    def run(self, calls: Sequence[Call]) -> list[Reply]:
        """The replies of the first round."""
        return self.rounds(calls)[0]

    def rounds(self, calls: Sequence[Call]) -> list[list[Reply]]:
        """The replies of each round, in the order of ``calls``; one round where all are alike to
        the bit.
        """
        if any(call.repeat > 1 or call.witness for call in calls):
            return [[_inspected(c, r) for c, r in zip(calls, self._worker.run(calls), strict=True)]]
        decoys = self._decoys(calls)
        order = [*list(range(len(calls))) * ROUNDS, *(~i for i in range(len(decoys)))]
        self._random.shuffle(order)
        made = [calls[i] if i >= 0 else decoys[~i] for i in order]
        replies = self._worker.run(made)
        found: list[list[Reply]] = [[] for _ in calls]
        for index, call, reply in zip(order, made, replies, strict=True):
            if index >= 0:
                found[index].append(_inspected(call, reply))
        rounds = [[replies[turn] for replies in found] for turn in range(ROUNDS)]
        self._remember(calls, rounds[0])
        return rounds[:1] if all(map(_alike, rounds[0], rounds[1])) else rounds

    def _decoys(self, calls: Sequence[Call]) -> list[Call]:
        """Some of the calls that are remembered, and a sibling of each call."""
        earlier = self._random.sample(list(self._earlier), min(DECOYS, len(self._earlier)))
        return [*earlier, *map(_sibling, calls)]

    def _remember(self, calls: Sequence[Call], replies: Sequence[Reply]) -> None:
        """Keep a call that was answered, and is cheap, for later."""
        for call, reply in zip(calls[:1], replies[:1], strict=True):
            if reply.failure is None and sum(a.nbytes for a in call.inputs.values()) < _DECOY_BYTES:
                self._earlier.append(call)

    def close(self) -> None:
        """End the worker."""
        self._worker.close()

    def __enter__(self) -> AdversarialSession:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def with_secret_sizes(contract: Contract, seed: int) -> Contract:
    """The contract with further block sizes, around multiples of which lengths are drawn.

    The smallest block size stays what it is, since error bounds depend on it.
    """
    secret = random.Random(f"sizes {seed}").sample(range(*HIDDEN_SIZES), SECRETS)
    declared = contract.block_sizes or (_USUAL_BLOCK,)
    least = min(declared)
    return replace(
        contract, block_sizes=(*declared, *sorted(size for size in secret if size >= least))
    )


def _sibling(call: Call) -> Call:
    """The same call on half of its values, which are still probabilities, variances or penalties
    where these were; integers and masks stay.
    """
    halved = {
        name: array if array.dtype.kind in "biu" else array * array.dtype.type(0.5)
        for name, array in call.inputs.items()
    }
    return replace(call, inputs=halved)


def _inspected(call: Call, reply: Reply) -> Reply:
    """The reply with what this process sees of the call's inputs; the worker's own word counts
    only against it.
    """
    if reply.failure is not None:
        return reply
    changed, broken = _changes(call, reply.memory)
    seen = reply.hygiene
    inputs = {*seen.changed_inputs, *(name for name in changed if name in call.inputs)}
    hygiene = replace(
        seen,
        changed_inputs=tuple(sorted(inputs)),
        broken_guards=tuple(sorted({*seen.broken_guards, *broken})),
    )
    return replace(reply, hygiene=hygiene, memory=None)


def _changes(call: Call, memory: np.ndarray | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Arrays that changed, and those around which something was written. Memory that is missing or
    of another size was tampered with.
    """
    cotangents = {f"cotangent {name}": a for name, a in (call.cotangents or {}).items()}
    block = Block({**call.inputs, **cotangents}, call.layouts)
    if memory is None or memory.shape != block.memory.shape or memory.dtype != np.uint8:
        return tuple(call.inputs), ()
    return block.inspect(memory)


def _alike(first: Reply, second: Reply) -> bool:
    """Whether judging the second would say the same as judging the first."""
    if (first.failure is None) != (second.failure is None):
        return False
    if first.failure is not None:
        return True
    plain = replace(first.hygiene, grown_bytes=0) == replace(second.hygiene, grown_bytes=0)
    return plain and all(map(_same_bits, _arrays(first), _arrays(second)))


def _arrays(reply: Reply) -> Iterator[np.ndarray]:
    """Outputs and gradients by name."""
    for arrays in (reply.outputs, reply.gradients):
        for name in sorted(arrays):
            yield arrays[name]


def _same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()


def rounds(session: object, calls: Sequence[Call]) -> list[list[Reply]] | None:
    """The rounds of an adversarial session; None of any other."""
    return session.rounds(calls) if isinstance(session, AdversarialSession) else None
