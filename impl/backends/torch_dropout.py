"""torch.dropout: torch's dropout, with the given mask in the place of the one that it draws."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode

from assay.impl.contract import Contract
from assay.impl.protocol import implements
from assay.impl.torch_backend import TorchBackend


class GivenMask(TorchDispatchMode):
    """While it is entered, ``bernoulli_`` copies the given mask; every other function runs as it
    is.
    """

    def __init__(self, keep: Tensor) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.keep = keep

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """The result of ``func``."""
        if func is torch.ops.aten.bernoulli_.float:
            return args[0].copy_(self.keep)
        return func(*args, **(kwargs or {}))


class TorchDropout(TorchBackend):
    """``functional.dropout`` and ``nn.Dropout``.

    The documentation says that entries are zeroed: a promise for any value. Entering the first mode
    loads much of torch, which is done here and not within the time limit of a call.
    """

    contract = Contract(
        name="torch.dropout",
        dtypes=("float32", "bfloat16", "float16", "float64"),
        provider="ATen",
        intermediate="input",
        modes=("no_grad", "grad", "module.grad"),
        requires=("torch",),
    )

    def __init__(self) -> None:
        with GivenMask(torch.ones(1, dtype=torch.bool)):
            functional.dropout(torch.ones(1))

    @implements("dropout")
    def dropout(self, x: Tensor, keep: Tensor, *, p: float = 0.5, training: bool = True) -> Tensor:
        """By the function, or by the module."""
        if keep.shape != x.shape:
            raise ValueError(f"keep {tuple(keep.shape)} must have the shape {tuple(x.shape)} of x")
        with GivenMask(keep):
            if self.mode == "module.grad":
                result: Tensor = nn.Dropout(p).train(training)(x)
                return result
            return functional.dropout(x, p, training)
