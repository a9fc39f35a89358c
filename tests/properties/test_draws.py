"""What the strategies draw: legal cases only, with the sizes at which kernels go wrong."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.impl.backends.numpy_float32 import NumpyFloat32
from assay.impl.loading import resolve
from assay.impl.session import open_session
from assay.properties.attention_cases import Wish, draw_attention, make_inputs
from assay.properties.attention_values import sees
from assay.properties.case import Case, Materials
from assay.properties.context import Context
from assay.properties.draw import Draw, choice, sizes
from assay.properties.mask_recipes import RECIPES as MASKS
from assay.properties.profiles import PROFILES
from assay.properties.properties import find
from assay.properties.property import Property
from assay.properties.recipes import RECIPES
from assay.properties.results import CellKey
from assay.properties.search import Search, fills, search
from assay.properties.trial import Bench
from assay.properties.values import RECIPES as VALUES
from assay.spec import ops

CONTRACT = NumpyFloat32.contract
CASE = Case("attention", "float32", "default", 0, {}, {}, {})


def _context(**contract: object) -> Context:
    changed = replace(CONTRACT, **contract)  # type: ignore[arg-type]
    return Context(ops.op("attention"), changed, "float32", "default", None, True)


def _cases(wish: Wish, ctx: Context) -> st.SearchStrategy[Case]:
    return st.composite(lambda draw: draw_attention(draw, ctx, wish))()


def _many(wish: Wish, ctx: Context, number: int = 400) -> list[Case]:
    found: list[Case] = []

    @settings(max_examples=number, database=None, derandomize=True)
    @given(_cases(wish, ctx))
    def collect(case: Case) -> None:
        found.append(case)

    collect()
    return found


def test_choices_that_compare_equal_stay_apart() -> None:
    kinds = {type(v) for options in ((True, False), (1, 0)) for v in _values(choice(*options))}

    assert kinds == {bool, int}


def _values(strategy: st.SearchStrategy[object]) -> list[object]:
    return list(strategy.elements)  # type: ignore[attr-defined]


def _every(strategy: st.SearchStrategy[int]) -> set[int]:
    found: set[int] = set()

    @settings(max_examples=400, database=None, derandomize=True)
    @given(strategy)
    def collect(size: int) -> None:
        found.add(size)

    collect()
    return found


def test_sizes_hold_small_ones_powers_of_two_and_the_edges_of_declared_tiles() -> None:
    drawn = _every(sizes((48,), 200))

    assert {1, 2, 3, 15, 16, 17, 127, 128, 129, 47, 48, 49, 95, 97, 143, 145} <= drawn
    assert all(isinstance(n, int) and n <= 200 for n in drawn)


@pytest.mark.parametrize("alignment", ["offset", "square", "top_left", "bottom_right"])
def test_every_query_sees_a_key_unless_empty_rows_are_wished_for(alignment: str) -> None:
    ctx = _context(causal_alignment=alignment)
    for case in _many(Wish(), ctx, 150):
        assert sees(case, make_inputs(case, Materials(case))).any(axis=-1).all(), case.summary()


def test_no_axis_is_shorter_than_the_contract_asks_for() -> None:
    for case in _many(Wish(), _context(least_length=2), 150):
        assert min(case.dims.values()) >= 2, case.summary()
        assert sees(case, make_inputs(case, Materials(case))).any(axis=-1).all(), case.summary()


def test_wished_empty_rows_are_there() -> None:
    for case in _many(Wish(empty="some"), _context(), 100):
        rows = sees(case, make_inputs(case, Materials(case))).any(axis=-1)
        assert not rows.all(), case.summary()


@pytest.mark.parametrize(
    ("alignment", "right"),
    [
        ("square", lambda c: c.dims["L"] == c.dims["S"] and "offset" not in c.attributes),
        ("top_left", lambda c: "offset" not in c.attributes),
        ("bottom_right", lambda c: c.attributes.get("offset", 0) == c.dims["S"] - c.dims["L"]),
        ("offset", lambda c: type(c.attributes.get("offset", 0)) is int),
    ],
)
def test_causal_cases_fit_the_declared_alignment(
    alignment: str, right: Callable[[Case], bool]
) -> None:
    ctx = _context(causal_alignment=alignment)
    cases = _many(Wish(causal=True, windows=False), ctx, 150)

    assert all(right(case) for case in cases)
    assert len({(c.dims["L"], c.dims["S"]) for c in cases}) > 10


def test_draws_cover_what_kernels_branch_on() -> None:
    cases = _many(Wish(), _context())

    def share(condition: Callable[[Case], bool]) -> float:
        return sum(map(condition, cases)) / len(cases)

    assert share(lambda c: bool(c.attributes.get("causal"))) > 0.25
    assert share(lambda c: c.attributes.get("offset", 0) > 0) > 0.05
    assert share(lambda c: "window" in c.attributes) > 0.05
    assert share(lambda c: c.mask is not None) > 0.15
    assert share(lambda c: c.dims["Hkv"] < c.dims["H"]) > 0.15
    assert share(lambda c: c.dims["S"] >= 15) > 0.25
    assert share(lambda c: c.dims["S"] % 16 == 1 and c.dims["S"] > 1) > 0.05
    assert share(lambda c: c.mask is None and len(c.attributes) == 0) > 0.05


def test_what_the_adapter_does_not_take_is_not_drawn() -> None:
    ctx = replace(_context(grouped_heads=False, value_width=False), keywords=())
    for case in _many(Wish(), ctx, 100):
        assert case.attributes == {}
        assert case.mask is None
        assert case.dims["H"] == case.dims["Hkv"]
        assert case.dims["D"] == case.dims["Dv"]


@pytest.mark.parametrize("recipe", VALUES)
@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 3, 5, 4), (1, 2, 0, 3), (1, 1, 2, 0)])
def test_value_recipes_give_finite_arrays_of_the_shape(recipe: str, shape: tuple[int, ...]) -> None:
    array = VALUES[recipe](np.random.default_rng(0), shape)

    assert array.shape == shape
    assert np.isfinite(array).all()


@pytest.mark.parametrize("recipe", MASKS)
@pytest.mark.parametrize("shape", [(1, 1, 1, 1), (2, 3, 5, 4), (1, 2, 0, 3), (1, 1, 2, 0)])
def test_mask_recipes_give_boolean_arrays_of_the_shape(recipe: str, shape: tuple[int, ...]) -> None:
    array = MASKS[recipe](np.random.default_rng(0), shape)

    assert array.shape == shape
    assert array.dtype == bool


def _drawn(prop: Property) -> list[Case]:
    """The cases that a search with seed 0 draws."""
    cases: list[Case] = []

    class Recorder(Search):
        def example(self, case: Case) -> None:
            cases.append(case)

    key = CellKey("numpy.float32", prop.id, "float32")
    with open_session(resolve("numpy.float32")) as session:
        bench = Bench(prop, _context(), session)
        search(Recorder(bench, PROFILES["quick"], key), 0, None)
    return cases


def test_the_seed_alone_decides_what_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prop = find("attention.refines")
    before = _drawn(prop)
    # Hypothesis would draw the numbers that it reads in modules of the user.
    (tmp_path / "numbers_of_mine.py").write_text(f"NUMBERS = {list(range(400))}\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("numbers_of_mine")

    assert _drawn(prop) == before
    assert len(before) == 60


def test_nearly_every_case_is_drawn_anew() -> None:
    """Hypothesis' own copies would leave a search with few different cases."""

    def draw(source: Draw, ctx: Context) -> Case:
        dims = {f"n{i}": source(choice(*range(1, 9))) for i in range(6)}
        return replace(CASE, dims=dims)

    prop = replace(find("attention.refines"), draw=draw)
    near = [_shared(a, b) for a, b in pairwise(_drawn(prop))]

    # Of six choices among eight two cases share 0.75 on average; a copy shares five.
    assert sum(shared >= 5 for shared in near) <= len(near) // 8


def _shared(a: Case, b: Case) -> int:
    return sum(a.dims[n] == b.dims[n] for n in a.dims)


def test_a_structure_is_judged_with_other_values_only_where_drawing_costs_more() -> None:
    ci = PROFILES["ci"]
    assert [fills(ci, find(i)) for i in ("attention.refines", "cache.position")] == [3, 1]


@pytest.mark.parametrize("name", ["convolution", "patch_embedding", "pooling"])
@pytest.mark.parametrize("taken", [(), ("stride",), ("padding", "window"), ("dilation",)])
def test_a_window_fits_by_the_keywords_that_are_taken(name: str, taken: tuple[str, ...]) -> None:
    ctx = replace(_context(), op=ops.op(name), keywords=taken)
    recipe = RECIPES[name]
    cases: list[Case] = []

    @settings(max_examples=60, database=None, derandomize=True)
    @given(st.composite(lambda draw: recipe.draw(draw, ctx))())
    def collect(case: Case) -> None:
        cases.append(case)

    collect()
    for case in cases:
        inputs = recipe.inputs(case, Materials(case))
        (out,) = ctx.op.forward(inputs, case.attributes).values()
        assert min(out.shape) >= 1, case.summary()
