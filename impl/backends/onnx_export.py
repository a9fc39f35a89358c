"""Functions of torch as sessions of ONNX Runtime: exported once for each kind of call."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnxruntime
import torch

Function = Callable[..., torch.Tensor]


class _Module(torch.nn.Module):
    def __init__(self, function: Function) -> None:
        super().__init__()
        self.function = function

    def forward(self, *arrays: torch.Tensor) -> torch.Tensor:
        """The function."""
        return self.function(*arrays)


def session_of(
    function: Function, axes: Mapping[str, str], dtypes: Mapping[str, np.dtype[Any]], opset: int
) -> onnxruntime.InferenceSession:
    """A session with one thread on the CPU.

    axes  by input name, in the function's order, a letter for each axis; every axis stays open, and
          the same letters have the same length in the export's example
    """
    letters = sorted({letter for names in axes.values() for letter in names})
    # Lengths of 0 and 1 would be compiled in, and equal ones be taken for the same.
    lengths = {letter: 3 + index for index, letter in enumerate(letters)}
    examples = [_example([lengths[x] for x in axes[n]], dtypes[n]) for n in axes]
    open_axes = tuple(dict.fromkeys(range(x.ndim), torch.export.Dim.DYNAMIC) for x in examples)
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            _Module(function).eval(),
            tuple(examples),
            input_names=list(axes),
            dynamo=True,
            opset_version=opset,
            dynamic_shapes=(open_axes,),
            verbose=False,
        )
    assert program is not None
    return open_session(program.model_proto.SerializeToString())


def _example(shape: list[int], dtype: np.dtype[Any]) -> torch.Tensor:
    return torch.from_numpy(np.ones(shape, dtype))


def open_session(model: bytes) -> onnxruntime.InferenceSession:
    """A quiet session with one thread: what it cannot run is raised all the same."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
