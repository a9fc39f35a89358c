"""Arrays as text: what is read back has the same bits, shape and dtype."""

from __future__ import annotations

import base64
import zlib

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from assay.properties.embedding import quoted
from assay.properties.literals import SHORT, literal


def read(text: str) -> np.ndarray:
    """Evaluate ``text`` with the script's own ``array``."""

    def array(dtype: str, shape: tuple[int, ...], values: object) -> np.ndarray:
        if isinstance(values, str):
            carrier = "uint16" if dtype == "bfloat16" else dtype
            data = zlib.decompress(base64.b64decode(values))
            return np.frombuffer(data, carrier).reshape(shape)
        if dtype == "bfloat16":
            bits = np.array(values, "float32").view("uint32") >> 16
            return bits.astype("uint16").reshape(shape)
        return np.array(values, dtype).reshape(shape)

    found: np.ndarray = eval(text, {"array": array, "np": np, "inf": np.inf, "nan": np.nan})
    return found


def same(a: np.ndarray, b: np.ndarray) -> bool:
    return a.shape == b.shape and a.tobytes() == b.tobytes()


DTYPES = ("float16", "float32", "float64", "bool", "int64")


@pytest.mark.parametrize("dtype", DTYPES)
@given(data=st.data())
def test_every_array_comes_back_to_the_bit(dtype: str, data: st.DataObject) -> None:
    shapes = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=6)
    drawn = data.draw(hnp.arrays(dtype, shapes))
    assert same(read(literal(drawn)), drawn)


@pytest.mark.parametrize("size", [3, SHORT, SHORT + 1, 1000])
def test_bfloat16_comes_back_as_its_bits(size: int) -> None:
    values = np.random.default_rng(size).normal(size=size).astype(ml_dtypes.bfloat16)
    assert same(read(literal(values)), values.view(np.uint16))


@pytest.mark.parametrize("size", [2, 300])
def test_longdouble_comes_back_whole(size: int) -> None:
    values = np.random.default_rng(1).normal(size=size).astype(np.longdouble) / 3
    values[0] = np.inf
    back = read(literal(values))
    assert back.dtype == np.longdouble
    assert np.array_equal(back, values)
    plain = np.ones(2, np.longdouble)
    assert read(literal(plain)).dtype == np.float64


def test_nan_with_a_payload_keeps_it() -> None:
    values = np.array([0x7FC00001], np.uint32).view(np.float32)
    assert same(read(literal(values)), values)


def test_short_arrays_can_be_read_by_a_person() -> None:
    assert literal(np.array([[0.1, -2.0]], np.float32)) == (
        "array('float32', (1, 2), [[0.1, -2.0]])"
    )


@pytest.mark.parametrize(
    "source",
    [
        "x = 1\n",
        "a = '''b'''\n",
        "a = \"\"\"b\"\"\" + '''c'''\n",
        "x = '\\\n'\n",
        "y = r'\\'",
        "",
        "# \\",
    ],
)
def test_source_as_text_means_the_same(source: str) -> None:
    assert eval(quoted(source)).removeprefix("\n") == source
