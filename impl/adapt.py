"""From a plain function to a backend."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from assay.impl.contract import Contract
from assay.impl.protocol import Backend, HostName


def adapt(function: Callable[..., Any], op: str, *, name: str | None = None) -> Backend:
    """A backend that computes ``op`` by calling ``function``, under a contract that promises
    little.

    Its arrays are torch tensors where the function, its module or its annotations mention torch,
    JAX's where they mention jax, else numpy arrays. ValueError: unknown op; TypeError: the function
    cannot be called as the op is.

    >>> adapt(lambda scores, *, mask=None: scores, "masked_softmax", name="f").contract.name
    'f'
    """
    backend = _base(host_of(function))()
    backend.contract = Contract(
        name=name or _word(function), gradients=backend.host_name != "numpy"
    )
    backend.functions = {op: function}
    backend.operations()
    return backend


def _base(host: HostName) -> type[Backend]:
    if host == "torch":
        from assay.impl.torch_backend import TorchBackend

        return TorchBackend
    if host == "jax":
        from assay.impl.jax_backend import JaxBackend

        return JaxBackend
    from assay.impl.numpy_backend import NumpyBackend

    return NumpyBackend


def host_of(function: Callable[..., Any]) -> HostName:
    """The array library that ``function`` is written for.

    >>> host_of(lambda x: x)
    'numpy'
    """
    kinds = {_top(base.__module__) for base in inspect.getmro(type(function))}
    if "torch" in kinds:
        return "torch"
    plain = inspect.unwrap(getattr(function, "func", function))
    space: Mapping[str, Any] = getattr(plain, "__globals__", {})
    names = getattr(getattr(plain, "__code__", None), "co_names", ())
    notes = " ".join(str(note) for note in getattr(plain, "__annotations__", {}).values())
    imported = {_top(v.__name__) for v in space.values() if isinstance(v, ModuleType)}
    if "torch" in imported or "torch" in names or "torch" in notes or "Tensor" in notes:
        return "torch"
    # A jitted function is an object of jaxlib's.
    jitted = any(kind.startswith("jax") for kind in kinds)
    return "jax" if jitted or "jax" in imported or {"jax", "jnp"} & set(names) else "numpy"


def _top(name: str) -> str:
    return name.partition(".")[0]


def _word(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", type(function).__name__)
    return "".join(c if c.isalnum() or c in "._-" else "_" for c in name) or "function"
