"""Inputs lie as their layouts say, hold the given values, and are guarded on all sides."""

from __future__ import annotations

from typing import get_args

import ml_dtypes
import numpy as np
import pytest

from assay.impl.buffers import GUARD, Block
from assay.impl.call import Layout, LayoutKind

KINDS = get_args(LayoutKind)


def _rows(dtype: object, shape: tuple[int, ...] = (2, 3, 4)) -> np.ndarray:
    array = np.arange(np.prod(shape)).reshape(shape).astype(dtype)  # type: ignore[call-overload]
    array[1:] = array[:1]
    return array


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16, bool])
def test_every_layout_holds_the_same_values(kind: LayoutKind, dtype: object) -> None:
    array = _rows(dtype)
    view = Block({"x": array}, {"x": Layout(kind, 3)}).views["x"]
    assert view.dtype == array.dtype
    assert view.tobytes() == array.tobytes()


def test_layouts_have_their_strides() -> None:
    array = _rows(np.float32)
    strides = {k: Block({"x": array}, {"x": Layout(k, 1)}).views["x"].strides for k in KINDS}
    assert strides["contiguous"] == strides["offset"] == (48, 16, 4)
    assert strides["transposed"] == (48, 4, 12)
    assert strides["strided"] == (96, 32, 8)
    assert strides["expanded"] == (0, 16, 4)


@pytest.mark.parametrize("offset", [1, 3, 15])
def test_offset_moves_the_first_element(offset: int) -> None:
    view = Block({"x": _rows(np.float32)}, {"x": Layout("offset", offset)}).views["x"]
    assert view.__array_interface__["data"][0] % 64 == 4 * offset % 64


def test_the_next_block_of_a_size_lies_where_the_last_one_lay() -> None:
    first = Block({"x": _rows(np.float32)}, {}).views["x"].ctypes.data
    assert Block({"x": _rows(np.float32)}, {}).views["x"].ctypes.data == first


def test_memory_that_something_refers_to_is_not_lent_again() -> None:
    values = {"x": np.ones(8, np.float32)}
    for held in (Block(values, {}).views["x"][4:], Block(values, {}).memory[64:]):
        later = [Block(values, {}) for _ in range(2)]
        later[0].memory[:] = 0
        assert not any(np.shares_memory(held, block.memory) for block in later)
        assert held.any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (0, 3), (2, 0, 3), (1, 1)])
def test_scalars_and_empty_axes_are_placed_in_every_layout(
    kind: LayoutKind, shape: tuple[int, ...]
) -> None:
    block = Block({"x": np.ones(shape, np.float32)}, {"x": Layout(kind, 1)})
    assert block.views["x"].shape == shape
    assert block.inspect() == ((), ())


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_element_is_found_in_every_layout(kind: LayoutKind) -> None:
    block = Block({"x": _rows(np.float32), "y": _rows(np.float32)}, {"x": Layout(kind, 1)})
    block.views["x"][-1, -1, -1] = 99
    assert block.inspect() == (("x",), ())


@pytest.mark.parametrize("where", [-1, -GUARD, 48, 48 + GUARD - 1])
def test_a_byte_written_within_64_of_an_array_breaks_its_guard(where: int) -> None:
    block = Block({"x": np.zeros((3, 4), np.float32), "y": np.zeros((1, 64), np.float32)}, {})
    block.memory[block.places["x"].start + where] ^= 1
    assert block.inspect() == ((), ("x",))


def test_a_write_between_the_elements_of_a_strided_array_breaks_a_guard() -> None:
    block = Block({"x": np.zeros((3, 4), np.float32)}, {"x": Layout("strided")})
    block.memory[block.places["x"].start + 4] ^= 1
    assert block.inspect() == ((), ("x",))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, ml_dtypes.bfloat16])
def test_reading_a_guard_gives_nan(dtype: object) -> None:
    block = Block({"x": np.zeros((8,), dtype)}, {})  # type: ignore[call-overload]
    before = block.memory[: block.places["x"].start].view(dtype)  # type: ignore[call-overload]
    assert np.isnan(before.astype(float)).all()


def test_a_copy_of_the_block_is_inspected_instead() -> None:
    block = Block({"x": np.zeros(4, np.float32)}, {})
    copy = block.memory.copy()
    copy[block.places["x"].start] = 1
    assert block.inspect(copy) == (("x",), ())
    assert block.inspect() == ((), ())
