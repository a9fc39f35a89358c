"""What a backend is: a contract, a host library, and one method (or function) for each op that it
computes.
"""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeVar

from assay.impl.contract import Contract
from assay.impl.host import Host
from assay.impl.signatures import ALIASES, signature

Method = TypeVar("Method", bound=Callable[..., Any])
HostName = Literal["numpy", "torch", "jax"]


class Unsupported(Exception):
    """A backend cannot do this variant of an op. Not a fault; shown as such, and never counted as a
    pass.
    """

    def __init__(self, op: str, reason: str) -> None:
        super().__init__(f"{op}: {reason}")
        self.op = op
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.op, self.reason)


class Unavailable(Exception):
    """A backend cannot run on this machine: a library, a device or a tool is missing. Not a fault:
    a campaign of several goes on without it and says so.

    reason  what is missing: "there is no CUDA device";  remedy: the command that brings it, or ""
    """

    def __init__(self, reason: str, remedy: str = "") -> None:
        super().__init__(reason, remedy)
        self.reason = reason
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.reason}; {self.remedy}" if self.remedy else self.reason


@dataclass(frozen=True)
class Operation:
    """A callable that computes one op, and how it spells the op's keywords.

    keywords  canonical name -> own spelling, for each that it accepts; None: it takes all
              (``**kwargs``)
    needed    canonical names that it declares without a default; they are always passed
    """

    method: Callable[..., Any]
    keywords: Mapping[str, str] | None
    needed: tuple[str, ...] = ()

    @property
    def accepted(self) -> tuple[str, ...] | None:
        """Canonical names of the accepted keywords; None: all."""
        return None if self.keywords is None else tuple(self.keywords)

    def spell(self, op: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """``given`` under this callable's own names, the needed defaults filled in.

        Raises Unsupported for a keyword that it does not accept: nothing is dropped silently.
        """
        if self.keywords is None:
            return dict(given)
        defaults = signature(op).keywords
        full = {**{name: defaults[name] for name in self.needed}, **given} if self.needed else given
        spelt = {}
        for name, value in full.items():
            if name not in self.keywords:
                shown = "" if hasattr(value, "shape") else f"={value!r}"
                accepted = ", ".join(self.keywords) or "none"
                raise Unsupported(
                    op, f"the adapter does not take {name}{shown}; accepted: {accepted}"
                )
            spelt[self.keywords[name]] = value
        return spelt


def implements(op: str) -> Callable[[Method], Method]:
    """Mark a method as the one that computes ``op``. ValueError names the valid ops.

    Inputs arrive by position, the mask and the attributes by keyword; keywords that the method does
    not have make calls that need them unsupported.
    """
    return _mark("__assay_implements__", op)


def implements_vjp(op: str) -> Callable[[Method], Method]:
    """Mark a method as the gradient of ``op``, for hosts without automatic differentiation.

    It is called as the forward method is, with each cotangent by keyword under its output's name
    (``<name>_cotangent`` where an input has that name), and returns a dict of gradients by input
    name.
    """
    return _mark("__assay_implements_vjp__", op)


def _mark(attribute: str, op: str) -> Callable[[Method], Method]:
    signature(op)

    def mark(method: Method) -> Method:
        setattr(method, attribute, (*getattr(method, attribute, ()), op))
        return method

    return mark


class Backend(ABC):
    """Base of all adapters. Subclasses set ``contract`` and mark methods with ``implements``.

    host_name  the library whose arrays the methods take and return
    mode       which of the contract's modes the next call is to run in; set before each call
    """

    contract: Contract
    mode: str = "default"
    host_name: ClassVar[HostName]
    functions: Mapping[str, Callable[..., Any]] = {}

    @abstractmethod
    def host(self) -> Host:
        """The array library's part of running a call."""

    def operations(self) -> dict[str, Operation]:
        """The callable for each op: marked methods, and plain functions that were adapted."""
        return self._operations

    def derivatives(self) -> dict[str, Operation]:
        """The gradient method for each op that has one of its own."""
        return self._derivatives

    def effective_contract(self) -> Contract:
        """The contract as its adapter bears it out: ``aligned``, and with the host's modes where it
        names none.
        """
        return self._effective_contract

    def differentiates(self, op: str) -> bool:
        """Whether gradients of ``op`` can be asked for."""
        return self.contract.gradients and op in self.derivatives()

    def gradient_modes(self) -> tuple[str, ...]:
        """The modes in which gradients can be asked for."""
        return self.effective_contract().modes

    def tracks_gradients(self) -> bool:
        """Whether the inputs of the next call are to be recorded for automatic differentiation."""
        return False

    @cached_property
    def _operations(self) -> dict[str, Operation]:
        adapted = {op: operation_of(op, f) for op, f in self.functions.items()}
        return {**self._marked("__assay_implements__"), **adapted}

    @cached_property
    def _derivatives(self) -> dict[str, Operation]:
        return self._marked("__assay_implements_vjp__")

    @cached_property
    def _effective_contract(self) -> Contract:
        return self.aligned()

    def aligned(self) -> Contract:
        """The contract, with causal alignment "square" where it claims "offset" and no method takes
        one.
        """
        operation = self.operations().get("attention")
        takes_offset = (
            operation is None or operation.keywords is None or "offset" in operation.keywords
        )
        if self.contract.causal_alignment == "offset" and not takes_offset:
            return replace(self.contract, causal_alignment="square")
        return self.contract

    def _marked(self, attribute: str) -> dict[str, Operation]:
        found = {}
        for name in dir(type(self)):
            for op in getattr(inspect.getattr_static(type(self), name), attribute, ()):
                found[op] = operation_of(op, getattr(self, name), extra=_extra(attribute, op))
        return found


def _extra(attribute: str, op: str) -> tuple[str, ...]:
    vjp = attribute == "__assay_implements_vjp__"
    return tuple(signature(op).cotangents.values()) if vjp else ()


def operation_of(op: str, function: Callable[..., Any], extra: tuple[str, ...] = ()) -> Operation:
    """Read how ``function`` spells the keywords of ``op``; ``extra`` are further keywords it may
    have.

    TypeError: it wants something that no call of ``op`` provides, or cannot take the inputs by
    position.
    """
    wanted = signature(op)
    known = {**wanted.keywords, **dict.fromkeys(extra)}
    parameters = _parameters(function)
    if parameters is None:
        return Operation(function, None)
    _check_positional(op, function, parameters)
    if any(p.kind is p.VAR_KEYWORD for p in parameters):
        return Operation(function, None)
    positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    taken = {p.name for p in positional[: len(wanted.inputs)]}
    keywords: dict[str, str] = {}
    needed = []
    for p in parameters:
        if p.name in taken or p.kind is p.VAR_POSITIONAL:
            continue
        name = ALIASES.get(p.name, p.name)
        if name in known and p.kind is not p.POSITIONAL_ONLY:
            keywords.setdefault(name, p.name)
            if p.default is p.empty and name in wanted.keywords:
                needed.append(name)
        elif p.default is p.empty:
            raise TypeError(
                f"parameter {p.name!r} of {_name(function)} has no default and "
                f"is no keyword of {op}; valid: {', '.join(known)}, "
                f"or one of the aliases {', '.join(sorted(ALIASES))}"
            )
    return Operation(function, keywords, tuple(needed))


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter] | None:
    """The parameters, or None where they cannot be known (builtins)."""
    # A torch module's __call__ hides the signature of its forward.
    shown = getattr(function, "forward", function)
    try:
        return list(inspect.signature(shown).parameters.values())
    except (TypeError, ValueError):
        return None


def _check_positional(
    op: str, function: Callable[..., Any], parameters: list[inspect.Parameter]
) -> None:
    wanted = signature(op).inputs
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return
    room = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in parameters)
    if room < len(wanted):
        raise TypeError(
            f"{_name(function)} takes {room} positional parameters, but {op} passes {len(wanted)}: "
            f"{', '.join(wanted)}"
        )


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__qualname__", type(function).__name__))
