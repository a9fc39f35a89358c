"""torch's part of running a call: tensors over the prepared memory, autograd, global state, kernel
names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import torch

from assay.impl.host import AdapterError, numpy_state

_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)


class TorchHost:
    """Tensors on ``device``; on "cpu" they share memory with the prepared block."""

    kind = "torch.Tensor"

    def __init__(self, device: str) -> None:
        self.device = torch.device(device)
        self.tracking = False
        self._moved: torch.Tensor | None = None
        self._base = 0

    def wrap(
        self, block: np.ndarray, views: Mapping[str, np.ndarray], differentiable: bool
    ) -> dict[str, Any]:
        """Tensors over ``views``; float inputs but masks and cotangents become leaves when
        ``differentiable``.
        """
        self.tracking = differentiable
        self._moved = None  # so that the next block may take its place
        if self.device.type == "cpu":
            self._base = block.__array_interface__["data"][0]
            natives = {name: tensor_of(view) for name, view in views.items()}
        else:
            self._moved = torch.from_numpy(block).to(self.device)
            self._base = self._moved.data_ptr()
            natives = {
                name: self._on_device(self._moved, block, view) for name, view in views.items()
            }
        if differentiable:
            for name, tensor in natives.items():
                if (
                    name != "mask"
                    and not name.startswith("cotangent ")
                    and tensor.is_floating_point()
                ):
                    tensor.requires_grad_()
        return natives

    def _on_device(self, moved: torch.Tensor, block: np.ndarray, view: np.ndarray) -> torch.Tensor:
        """The tensor that lies in ``moved`` where ``view`` lies in ``block``."""
        dtype = tensor_of(np.empty(0, view.dtype)).dtype
        if view.size == 0:
            return torch.empty(view.shape, dtype=dtype, device=self.device)
        start = view.__array_interface__["data"][0] - block.__array_interface__["data"][0]
        whole = moved[: moved.numel() // 8 * 8].view(dtype)
        strides = [stride // view.itemsize for stride in view.strides]
        return whole.as_strided(view.shape, strides, start // view.itemsize)

    def fetch_block(self) -> np.ndarray | None:
        """The moved block, copied back."""
        return None if self._moved is None else self._moved.cpu().numpy()

    def owns(self, value: Any) -> bool:
        """Any tensor."""
        return isinstance(value, torch.Tensor)

    def copy(self, native: Any) -> np.ndarray:
        """The values of a dense tensor of any device, as a row-major numpy array."""
        if native.layout is not torch.strided or native.is_meta:
            raise AdapterError(
                f"the adapter returned a tensor with layout {native.layout} "
                f"on device {native.device}; it must be dense and hold values"
            )
        plain = native.detach().to("cpu", copy=True, memory_format=torch.contiguous_format)
        if plain.dtype is torch.bfloat16:
            return plain.view(torch.int16).numpy().view(_BFLOAT16)
        try:
            return plain.numpy()
        except TypeError as error:
            raise AdapterError(
                f"the adapter returned a tensor that numpy cannot hold: {error}"
            ) from error

    def span(self, native: Any) -> tuple[int, int]:
        """Address range of the elements."""
        if native.numel() == 0:
            return (0, 0)
        start = native.data_ptr()
        last = sum(
            (length - 1) * stride
            for length, stride in zip(native.shape, native.stride(), strict=True)
        )
        return (start, start + (last + 1) * native.element_size())

    def base(self) -> int:
        """Address of the block, on its device."""
        return self._base

    def describe(self, native: Any) -> tuple[str, str]:
        """Dtype and device type ("float32", "cpu")."""
        return str(native.dtype).removeprefix("torch."), native.device.type

    def state(self) -> dict[str, Any]:
        """torch's and numpy's."""
        return {
            **numpy_state(),
            "torch random state": torch.get_rng_state().numpy().tobytes(),
            "torch default dtype": torch.get_default_dtype(),
            "torch gradient mode": torch.is_grad_enabled(),
            "torch thread count": torch.get_num_threads(),
            "torch deterministic algorithms": torch.are_deterministic_algorithms_enabled(),
            "torch matmul precision": torch.get_float32_matmul_precision(),
        }

    @contextmanager
    def context(self) -> Iterator[None]:
        """Gradient mode as the call's mode asks for."""
        with np.errstate(all="ignore"), torch.set_grad_enabled(self.tracking):
            yield

    def unavailable(self) -> str:
        """Why tensors cannot be put on the device."""
        return _unavailable(self.device)

    def gradients(
        self, outputs: Mapping[str, Any], inputs: Mapping[str, Any], cotangents: Mapping[str, Any]
    ) -> dict[str, Any]:
        """By autograd; an input that no output depends on gets zeros, as the mathematics says."""
        leaves = {name: tensor for name, tensor in inputs.items() if tensor.requires_grad}
        reached = [name for name in cotangents if outputs[name].requires_grad]
        if not reached:
            raise RuntimeError(
                "no output depends on an input through autograd, so there are no gradients"
            )
        found = torch.autograd.grad(
            [outputs[name] for name in reached],
            list(leaves.values()),
            [cotangents[name] for name in reached],
            allow_unused=True,
            materialize_grads=True,
        )
        return dict(zip(leaves, found, strict=True))

    def synchronize(self) -> None:
        """Wait for the device."""
        if self.device.type != "cpu":
            torch.accelerator.synchronize()

    def watch_kernels(self) -> AbstractContextManager[Sequence[str]]:
        """Names of the aten operators and device kernels that ran."""
        return _kernels(self.device.type)

    def out_of_memory(self, error: BaseException) -> bool:
        """torch's CPU allocator raises a plain RuntimeError."""
        text = str(error)
        cpu = (
            "DefaultCPUAllocator" in text
            or "can't allocate memory" in text
            or "not enough memory" in text
        )
        return isinstance(error, torch.OutOfMemoryError) or (
            isinstance(error, RuntimeError) and cpu
        )

    def versions(self) -> dict[str, str]:
        """torch, numpy, and the processor: a CPU's instructions, or a GPU's name and interface."""
        # A plain str: torch's own kind of version would import torch wherever it is unpickled.
        found = {"numpy": np.__version__, "torch": str(torch.__version__)}
        if self.device.type == "cpu":
            found["cpu"] = instructions()
        if self.device.type == "cuda" and torch.cuda.is_available():
            found["gpu"] = torch.cuda.get_device_name(self.device)
            found["cuda"] = str(torch.version.cuda)
        return found


def instructions() -> str:
    """What torch's kernels and oneDNN's choose by: ``AVX2``, ``AVX512 AMX``. Older versions of
    torch do not tell of AMX.
    """
    tell = getattr(torch.cpu, "get_capabilities", None)
    has_tiles = tell is not None and tell().get("amx_bf16", False)
    return torch.backends.cpu.get_cpu_capability() + (" AMX" if has_tiles else "")


@cache
def _unavailable(device: torch.device) -> str:
    try:
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError, ImportError) as error:
        return f"device {str(device)!r} is not available: {str(error).splitlines()[0]}"
    return ""


def tensor_of(view: np.ndarray) -> torch.Tensor:
    """A tensor that shares memory with ``view``; bfloat16 crosses as bits, since torch knows no
    ml_dtypes.
    """
    if view.dtype == _BFLOAT16:
        return torch.from_numpy(view.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(view)


@contextmanager
def _kernels(device: str) -> Iterator[list[str]]:
    from torch.profiler import ProfilerActivity, profile

    names: list[str] = []
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if device == "cuda" else [])]
    with _quiet(), profile(activities=activities, acc_events=True) as seen:
        yield names
    names.extend(event.key for event in seen.key_averages())


@contextmanager
def _quiet() -> Iterator[None]:
    """Standard error goes nowhere meanwhile: the profiler library writes a line there at each start
    and stop.
    """
    saved, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)
        os.close(nowhere)
