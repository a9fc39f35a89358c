"""What is tested: backends, the protocol that they follow, and the means to load and run them.

Names are imported on first use, so that importing this package costs nothing and never imports
torch.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from assay.impl.contract import Contract as Contract
    from assay.impl.jax_backend import JaxBackend as JaxBackend
    from assay.impl.numpy_backend import NumpyBackend as NumpyBackend
    from assay.impl.protocol import Backend as Backend
    from assay.impl.protocol import Unavailable as Unavailable
    from assay.impl.protocol import Unsupported as Unsupported
    from assay.impl.protocol import implements as implements
    from assay.impl.protocol import implements_vjp as implements_vjp
    from assay.impl.torch_backend import TorchBackend as TorchBackend

_HOMES = {
    "Backend": "protocol",
    "Contract": "contract",
    "JaxBackend": "jax_backend",
    "NumpyBackend": "numpy_backend",
    "TorchBackend": "torch_backend",
    "Unavailable": "protocol",
    "Unsupported": "protocol",
    "implements": "protocol",
    "implements_vjp": "protocol",
}

__all__ = [
    "Backend",
    "Contract",
    "JaxBackend",
    "NumpyBackend",
    "TorchBackend",
    "Unavailable",
    "Unsupported",
    "implements",
    "implements_vjp",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}; valid: {', '.join(__all__)}"
        )
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
