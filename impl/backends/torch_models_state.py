"""A model's state, which is one vector, and the parameters of the torch module that hold it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

Tensors = tuple[Tensor, ...]


@dataclass(frozen=True)
class Part:
    """Consecutive arrays of the state, and what becomes of them in a module.

    shapes  of the arrays
    names   of the module's parameters that hold them
    there   arrays -> parameters, differentiable
    back    parameters -> arrays, the inverse
    """

    shapes: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]
    there: Callable[..., Tensors]
    back: Callable[..., Tensors]


Parts = Iterable[Part]


def same(name: str, parameter: Tensor) -> Part:
    """A parameter that is stored as torch keeps it."""
    return Part((tuple(parameter.shape),), (name,), lambda x: (x,), lambda x: (x,))


def turned(name: str, parameter: Tensor) -> Part:
    """A matrix [out, in] that is stored in-by-out."""
    return Part((tuple(parameter.shape[::-1]),), (name,), lambda x: (x.T,), lambda x: (x.T,))


def joined(name: str, parameter: Tensor, sizes: Sequence[int]) -> Part:
    """Matrices that are stored in-by-out one after the other, stacked [sum of sizes, in]."""
    return Part(
        tuple((parameter.shape[1], size) for size in sizes),
        (name,),
        lambda *x: (torch.cat(x, dim=1).T,),
        lambda x: x.T.split(tuple(sizes), dim=1),
    )


def every(module: nn.Module) -> list[Part]:
    """All parameters of a module, as torch keeps them."""
    return [same(name, p) for name, p in module.named_parameters()]


def rate(p: float) -> list[Part]:
    """The stored rate of a dropout, which is no parameter; none where the rate is 0."""
    stored = (torch.tensor(p, dtype=torch.float64),)
    return [Part(((),), (), lambda _: (), lambda: stored)] if p else []


def under(path: str, parts: Parts) -> Iterator[Part]:
    """The parts of a submodule that stands at ``path``."""
    for part in parts:
        yield replace(part, names=tuple(f"{path}.{name}" for name in part.names))


def parts_of(module: nn.Module) -> list[Part]:
    """What the module says of itself, or else all parameters in their order."""
    own: Any = getattr(module, "parts", None)
    return list(own()) if own else every(module)


def unpack(module: nn.Module, state: Tensor) -> dict[str, Tensor]:
    """The module's parameters by name, cut from a state. ValueError for one of another length."""
    parts = parts_of(module)
    shapes = [shape for part in parts for shape in part.shapes]
    counts = [torch.Size(shape).numel() for shape in shapes]
    if state.shape != (sum(counts),):
        raise ValueError(f"state has {state.shape[0]} numbers; the model has {sum(counts)}")
    pieces = state.split(counts)
    arrays = [piece.reshape(shape) for piece, shape in zip(pieces, shapes, strict=True)]
    ends = accumulate((len(part.shapes) for part in parts), initial=0)
    found: dict[str, Tensor] = {}
    for part, (start, end) in zip(parts, pairwise(ends), strict=True):
        found |= dict(zip(part.names, part.there(*arrays[start:end]), strict=True))
    return found


def pack(module: nn.Module, parameters: Mapping[str, Tensor], like: Tensor) -> Tensor:
    """The inverse of ``unpack``, in the format and on the device of ``like``."""
    arrays = [
        array for part in parts_of(module) for array in part.back(*map(parameters.get, part.names))
    ]
    return torch.cat([array.to(like).reshape(-1) for array in arrays])


def run(module: nn.Module, state: Tensor, *inputs: Any) -> Tensor:
    """The module, in evaluation, on parameters that are cut from ``state``."""
    found: Tensor = functional_call(module.eval(), unpack(module, state), inputs, strict=True)
    return found


def filled(module: nn.Module, state: Tensor) -> nn.Module:
    """The module with a state of its own to train, in the format of ``state``. What was one
    parameter under several names stays one.
    """
    held = unpack(module, state)
    made = {
        id(p): nn.Parameter(held[n].detach().clone().contiguous(), requires_grad=p.requires_grad)
        for n, p in module.named_parameters()
    }
    for owner in module.modules():
        for name, p in list(owner.named_parameters(recurse=False)):
            setattr(owner, name, made[id(p)])
    return module
