"""Runs calls of a backend in this process and observes what they do besides computing."""

from __future__ import annotations

import ctypes
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass, replace
from typing import Any

from assay.impl.buffers import Block
from assay.impl.call import Call, Failure, Hygiene, Reply
from assay.impl.host import AdapterError, Host
from assay.impl.protocol import Backend, Operation, Unsupported
from assay.impl.signatures import signature

_TRACE_LINES = 24
_PAGE = 4096


@dataclass(frozen=True)
class _Run:
    """One finished call: its reply, and its native outputs, kept alive until the batch ends."""

    reply: Reply
    natives: Mapping[str, Any]


def execute(
    backend: Backend,
    calls: Sequence[Call],
    *,
    starting: Callable[[int], None] | None = None,
    with_memory: bool = False,
) -> list[Reply]:
    """Run ``calls`` in order; one reply each. What a backend does wrong becomes a failure and is
    never raised.

    ``starting`` is told the index of each call before it runs; ``with_memory``: replies hold the
    bytes of the inputs' block after the call.
    """
    runs = []
    for index, call in enumerate(calls):
        if starting is not None:
            starting(index)
        runs.append(_run(backend, call, with_memory))
    if len(runs) > 1:
        return _later_changes(backend.host(), runs)
    return [run.reply for run in runs]


def _run(backend: Backend, call: Call, with_memory: bool) -> _Run:
    try:
        return _attempt(backend, call, with_memory)
    except (Exception, SystemExit) as error:
        return _Run(Reply(failure=_failure(backend, error)), {})


def _failure(backend: Backend, error: BaseException) -> Failure:
    name = type(error).__name__
    if isinstance(error, Unsupported):
        return Failure("unsupported", error.reason, name)
    if isinstance(error, NotImplementedError):
        return Failure("unsupported", str(error) or "not implemented", name)
    if isinstance(error, AdapterError):
        return Failure("adapter", str(error), name)
    if isinstance(error, MemoryError) or backend.host().out_of_memory(error):
        return Failure("memory", str(error) or "out of memory", name, _trace(error))
    return Failure("raised", str(error), name, _trace(error))


def _trace(error: BaseException) -> str:
    """The traceback without our own frames above the adapter, and cut in the middle when it is
    long.
    """
    frames = error.__traceback__
    while frames is not None and frames.tb_frame.f_globals.get("__name__") == __name__:
        frames = frames.tb_next
    text = "".join(traceback.format_exception(type(error), error, frames))
    lines = text.splitlines()
    if len(lines) > _TRACE_LINES:
        half = _TRACE_LINES // 2
        lines = [*lines[:half], "  ...", *lines[-half:]]
    return "\n".join(lines)


def _attempt(backend: Backend, call: Call, with_memory: bool) -> _Run:
    operation = backend.operations().get(call.op)
    if operation is None:
        have = ", ".join(sorted(backend.operations())) or "none"
        raise Unsupported(call.op, f"the backend does not implement {call.op}; it has: {have}")
    attributes = _fitting_attributes(backend, call)
    host = backend.host()
    if host.unavailable():
        raise Unsupported(call.op, host.unavailable())
    backend.mode = call.mode
    prepared = _Prepared.of(backend, host, call)
    # State is read inside the context, which would undo a change of its own settings on leaving.
    with host.context():
        before = host.state()
        with host.watch_kernels() if call.witness else nullcontext([]) as kernels:
            outputs, gradients, seconds, grown = _compute(
                backend, host, operation, call, attributes, prepared
            )
        after = host.state()
    copies = {name: host.copy(native) for name, native in outputs.items()}
    slopes = {name: host.copy(native) for name, native in gradients.items()}
    fetched = host.fetch_block()
    changed, broken = prepared.block.inspect(fetched)
    left = prepared.block.memory if fetched is None else fetched
    named = {**outputs, **{f"gradient of {k}": v for k, v in gradients.items()}}
    told = {name: host.describe(native) for name, native in named.items()}
    hygiene = Hygiene(
        dtypes={name: dtype for name, (dtype, _) in told.items()},
        devices={name: device for name, (_, device) in told.items()},
        changed_inputs=tuple(n for n in changed if n in call.inputs),
        broken_guards=broken,
        aliased=_aliased(host, prepared.block, outputs, call),
        global_state=() if before == after else tuple(n for n in before if before[n] != after[n]),
        grown_bytes=grown,
        kernels=tuple(dict.fromkeys(kernels)),
    )
    memory = left.copy() if with_memory else None
    return _Run(Reply(copies, slopes, None, hygiene, seconds, memory), outputs)


def _fitting_attributes(backend: Backend, call: Call) -> Mapping[str, Any]:
    """The call's attributes, less an offset that the contract's causal alignment implies.

    Raises Unsupported where the contract's own alignment would mean something else than the call
    asks for.
    """
    if call.op != "attention" or not call.attributes.get("causal"):
        return call.attributes
    alignment = backend.effective_contract().causal_alignment
    if alignment == "offset":
        return call.attributes
    queries, keys = call.inputs["q"].shape[-2], call.inputs["k"].shape[-2]
    offset = call.attributes.get("offset", 0)
    implied = keys - queries if alignment == "bottom_right" else 0
    if offset != implied or (alignment == "square" and queries != keys):
        raise Unsupported(
            "attention",
            f"the contract declares causal_alignment={alignment!r}, which cannot express causal "
            f"with offset={offset} for {queries} queries and {keys} keys",
        )
    return {name: value for name, value in call.attributes.items() if name != "offset"}


@dataclass(frozen=True)
class _Prepared:
    """Inputs and cotangents of a call as natives, and the block that they lie in."""

    block: Block
    inputs: Mapping[str, Any]
    cotangents: Mapping[str, Any]

    @classmethod
    def of(cls, backend: Backend, host: Host, call: Call) -> _Prepared:
        if call.cotangents is not None:
            _check_gradients(backend, call)
        cotangents = {f"cotangent {name}": array for name, array in (call.cotangents or {}).items()}
        block = Block({**call.inputs, **cotangents}, call.layouts)
        tracked = backend.tracks_gradients()
        natives = host.wrap(block.memory, block.views, tracked)
        return cls(
            block,
            {name: natives[name] for name in call.inputs},
            {name.removeprefix("cotangent "): natives[name] for name in cotangents},
        )


def _check_gradients(backend: Backend, call: Call) -> None:
    if not backend.differentiates(call.op):
        raise Unsupported(call.op, "the backend offers no gradient of it")
    if call.mode not in backend.gradient_modes():
        valid = ", ".join(backend.gradient_modes())
        raise Unsupported(call.op, f"mode={call.mode!r} records no gradients; valid: {valid}")


def _compute(
    backend: Backend,
    host: Host,
    operation: Operation,
    call: Call,
    attributes: Mapping[str, Any],
    prepared: _Prepared,
) -> tuple[dict[str, Any], dict[str, Any], float, int]:
    """Outputs, gradients, seconds of the last round and bytes gained over the rounds after the
    first quarter.
    """
    grown = start = 0
    seconds = 0.0
    outputs: dict[str, Any] = {}
    gradients: dict[str, Any] = {}
    warm = max(1, call.repeat // 4)
    for turn in range(max(1, call.repeat)):
        if turn == warm:
            start = held_bytes()
        began = time.perf_counter()
        outputs = _forward(host, operation, call, attributes, prepared.inputs)
        if call.cotangents is not None:
            gradients = _gradients(backend, host, call, attributes, prepared, outputs)
        host.synchronize()
        seconds = time.perf_counter() - began
    if call.repeat > warm:
        grown = max(0, held_bytes() - start)
    return outputs, gradients, seconds, grown


def _forward(
    host: Host,
    operation: Operation,
    call: Call,
    attributes: Mapping[str, Any],
    inputs: Mapping[str, Any],
) -> dict[str, Any]:
    names = signature(call.op)
    positional = [inputs[name] for name in names.inputs]
    optional = {name: native for name, native in inputs.items() if name not in names.inputs}
    value = operation.method(*positional, **operation.spell(call.op, {**optional, **attributes}))
    values = (value,) if len(names.outputs) == 1 else value
    if not isinstance(values, tuple) or len(values) != len(names.outputs):
        raise AdapterError(
            f"{call.op} must return {len(names.outputs)} arrays, but gave {_kind(value)}"
        )
    for name, native in zip(names.outputs, values, strict=True):
        _check_native(host, f"{call.op} returned {name}", native)
    return dict(zip(names.outputs, values, strict=True))


def _gradients(
    backend: Backend,
    host: Host,
    call: Call,
    attributes: Mapping[str, Any],
    prepared: _Prepared,
    outputs: Mapping[str, Any],
) -> dict[str, Any]:
    vjp = backend.derivatives().get(call.op)
    if vjp is None:
        return host.gradients(outputs, prepared.inputs, prepared.cotangents)
    names = signature(call.op)
    positional = [prepared.inputs[name] for name in names.inputs]
    optional = {n: x for n, x in prepared.inputs.items() if n not in names.inputs}
    cotangents = {names.cotangents[n]: x for n, x in prepared.cotangents.items()}
    keywords = vjp.spell(call.op, {**optional, **attributes, **cotangents})
    value = vjp.method(*positional, **keywords)
    if not isinstance(value, Mapping):
        raise AdapterError(
            f"the gradient of {call.op} must be a dict by input name, but is {_kind(value)}"
        )
    for name, native in value.items():
        _check_native(host, f"the gradient of {call.op} holds {name}", native)
    return dict(value)


def _check_native(host: Host, what: str, native: Any) -> None:
    if not host.owns(native):
        raise AdapterError(f"{what} as {_kind(native)}; it must be a {host.kind}")


def _kind(value: Any) -> str:
    kind = type(value)
    name = (
        kind.__qualname__
        if kind.__module__ == "builtins"
        else f"{kind.__module__}.{kind.__qualname__}"
    )
    return f"{name} of length {len(value)}" if isinstance(value, (tuple, list, dict)) else name


def _aliased(
    host: Host, block: Block, outputs: Mapping[str, Any], call: Call
) -> tuple[tuple[str, str], ...]:
    base = host.base()
    pairs: list[tuple[str, str]] = []
    for name, native in outputs.items():
        low, high = host.span(native)
        if high > base and low < base + block.memory.size:
            shared = block.overlapping(low - base, high - base)
            pairs.extend((name, other) for other in shared if other in call.inputs)
    return tuple(pairs)


def _later_changes(host: Host, runs: Sequence[_Run]) -> list[Reply]:
    """Replies with ``changed_later``: outputs whose bits moved, or whose memory a later output
    shares.
    """
    spans = [{n: host.span(x) for n, x in run.natives.items()} for run in runs]
    replies = []
    for index, run in enumerate(runs):
        later = [span for spans_of in spans[index + 1 :] for span in spans_of.values()]
        changed = tuple(
            name
            for name, native in run.natives.items()
            if any(_overlap(spans[index][name], span) for span in later)
            or host.copy(native).tobytes() != run.reply.outputs[name].tobytes()
        )
        reply = run.reply
        replies.append(
            replace(reply, hygiene=replace(reply.hygiene, changed_later=changed))
            if changed
            else reply
        )
    return replies


def _overlap(a: tuple[int, int], b: tuple[int, int]) -> bool:
    return a[0] < b[1] and b[0] < a[1]


def held_bytes() -> int:
    """Resident memory of this process without what it has freed; 0 where the system does not tell.

    glibc keeps freed memory resident for later requests, so that a leak which is served from it
    would not show. It gives that back to the system first; other allocators are taken as they are.
    """
    with suppress(AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    try:
        with open("/proc/self/statm", "rb") as stream:
            return int(stream.read().split()[1]) * _PAGE
    except OSError:
        return 0
