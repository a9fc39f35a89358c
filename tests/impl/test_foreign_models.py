"""The adapters of foreign models are short, are those of the documentation, and are within their
bounds. They run in workers, since their libraries take long to import.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assay.impl.call import Call
from assay.impl.loading import resolve
from assay.impl.registry import BACKENDS
from assay.impl.session import Session, open_session
from assay.spec.models.flat import configure, pack, stored_in
from assay.spec.ops import op
from tests.impl.agreement import beyond

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "impl/backends"
MOST = 25
FOREIGN = [b for b in BACKENDS if b.extra == "torch,foreign"]
DECODERS = ("cache", "gpt2_cache")
ADAPTERS = [b for b in FOREIGN if not b.location.partition(":")[0].endswith(DECODERS)]
Opener = Callable[[str], Session]
needs_transformers = pytest.mark.skipif(
    not all(map(find_spec, ("torch", "transformers"))), reason="transformers is not installed"
)
needs_mambapy = pytest.mark.skipif(
    not all(map(find_spec, ("torch", "mambapy"))), reason="mambapy is not installed"
)


# -- Length and documentation


def _lines(node: ast.stmt, source: str) -> set[int]:
    """Lines of code: neither blank, nor comment, nor docstring."""
    assert isinstance(node, ast.ClassDef | ast.FunctionDef)
    assert node.end_lineno is not None
    first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
    text = source.splitlines()
    plain = {
        n for n in range(first, node.end_lineno + 1) if text[n - 1].strip()[:1] not in ("", "#")
    }
    for inner in ast.walk(node):
        if isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Constant):
            assert inner.end_lineno is not None
            plain -= set(range(inner.lineno, inner.end_lineno + 1))
    return plain


def length(source: str, name: str) -> int:
    """Lines of a class, and of the functions and classes of its file that it builds on."""
    parts = {
        n.name: n for n in ast.parse(source).body if isinstance(n, ast.ClassDef | ast.FunctionDef)
    }
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        current = waiting.pop()
        seen.add(current)
        names = {n.id for n in ast.walk(parts[current]) if isinstance(n, ast.Name)}
        waiting += [n for n in names & parts.keys() if n not in seen]
    functions = {n for n in seen if n == name or isinstance(parts[n], ast.FunctionDef)}
    return len(set().union(*(_lines(parts[n], source) for n in functions)))


@pytest.mark.parametrize("builtin", ADAPTERS, ids=lambda b: b.name)
def test_an_adapter_has_at_most_25_lines(builtin: Any) -> None:
    module, _, name = builtin.location.partition(":")
    source = (FOLDER / f"{module.rpartition('.')[2]}.py").read_text()
    assert 0 < length(source, name) <= MOST


def test_lines_are_counted_with_the_functions_that_a_class_calls() -> None:
    source = 'def f():\n    """Text."""\n    return 1\n\n\nclass A:\n    # why\n    x = f()\n'
    assert length(source, "A") == 4
    assert length(source.replace("f()\n", "2\n").replace("def 2", "def f()"), "A") == 2


def test_the_page_shows_the_adapters_as_they_are() -> None:
    page = (ROOT / "docs/foreign-models.md").read_text()
    blocks = re.findall(r"```python\n# (\S+)\n(.*?)\n```", page, re.DOTALL)
    assert len(blocks) == 3
    for path, code in blocks:
        assert code in (ROOT / path).read_text(), path
    assert all(f"`{b.name}`" in page for b in FOREIGN)


# -- Values and gradients


@pytest.fixture(scope="module")
def opened() -> Iterator[Opener]:
    """Sessions of the backends by name, each opened once."""
    sessions: dict[str, Session] = {}

    def get(name: str) -> Session:
        if name not in sessions:
            sessions[name] = open_session(resolve(name), timeout=240.0)
        return sessions[name]

    yield get
    for session in sessions.values():
        session.close()


def _drawn(**shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    return {n: rng.uniform(0.1, 1, s).astype(np.float32) for n, s in shapes.items()}


def wrong(session: Session, call: Call, *modes: str) -> dict[str, list[str]]:
    """What is beyond its bound in a mode, or in each; gradients too where the mode has them."""
    out = op(call.op).forward(call.inputs, call.attributes)
    kind = next(a.dtype for a in call.inputs.values() if a.dtype.kind == "f")
    rng, contract = np.random.default_rng(4), session.description.contract
    slopes = {n: rng.normal(size=x.shape).astype(kind) for n, x in out.items()}
    found = {}
    for mode in modes or contract.modes:
        cotangents = None if "no_grad" in mode else slopes
        found[mode] = beyond(session, replace(call, mode=mode, cotangents=cotangents))
    return {mode: names for mode, names in found.items() if names}


GPT = {"vocabulary": 7, "context": 6, "layers": 2, "heads": 2, "width": 4}


def _gpt(name: str, shape: tuple[int, int], fields: dict[str, Any], **attributes: Any) -> Call:
    text, rng = json.dumps(fields), np.random.default_rng(0)
    config = configure("gpt", text)
    arrays = {p.name: 0.5 * rng.normal(size=p.shape) for p in stored_in("gpt", config)}
    inputs = {"state": pack("gpt", config, arrays), "ids": rng.integers(0, 7, shape)}
    return Call(name, inputs, {"config": text, **attributes})


@needs_transformers
@pytest.mark.parametrize("bias", [True, False])
def test_gpt2_and_all_its_gradients_are_those_of_the_course_gpt(opened: Opener, bias: bool) -> None:
    call = _gpt("gpt", (2, 5), {**GPT, "bias": bias})
    assert wrong(opened("transformers.gpt2"), call) == {}


@needs_transformers
def test_gpt2_refuses_sizes_of_0_by_their_names(opened: Opener) -> None:
    call = _gpt("gpt", (2, 5), GPT)
    bad = Call("gpt", call.inputs, {"config": json.dumps({**GPT, "vocabulary": 0})}, mode="sdpa")
    (reply,) = opened("transformers.gpt2").run([bad])
    assert reply.failure is not None
    assert "vocabulary=0" in reply.failure.message


SCRIPT = ("append 3", "overflow 4", "reorder 1 1", "append 2", "reset", "append 1")


@needs_transformers
@pytest.mark.parametrize("pads", [(), (2, 0)])
def test_gpt2_decodes_chunks_from_its_cache(opened: Opener, pads: tuple[int, ...]) -> None:
    call = _gpt("gpt_decode", (2, 10), GPT, script=SCRIPT, pads=pads)
    assert wrong(opened("transformers.gpt2.cache"), call) == {}


@needs_transformers
@pytest.mark.parametrize(
    ("name", "mode"),
    [("transformers.cache.dynamic", "no_grad"), ("transformers.cache.static", "guarded_no_grad")],
)
def test_a_cache_keeps_what_a_script_says(opened: Opener, name: str, mode: str) -> None:
    streams = _drawn(q=(2, 2, 4, 10, 3), k=(2, 2, 2, 10, 3), v=(2, 2, 2, 10, 3))
    call = Call("kv_cache", streams, {"script": SCRIPT, "capacity": 6})
    assert wrong(opened(name), call, mode) == {}


@needs_transformers
def test_a_static_cache_rolls_its_window(opened: Opener) -> None:
    streams = _drawn(q=(1, 2, 2, 9, 3), k=(1, 2, 2, 9, 3), v=(1, 2, 2, 9, 3))
    script = ("append 2", "append 5", "append 1", "append 1")
    call = Call("kv_cache", streams, {"script": script, "capacity": 4, "rolling": True})
    assert wrong(opened("transformers.cache.static"), call) == {}


@needs_transformers
@pytest.mark.parametrize("name", ["transformers.llama", "transformers.llama.eager"])
@pytest.mark.parametrize("attributes", [{}, {"causal": True}, {"causal": True, "offset": 3}])
def test_llama_attention_groups_heads(
    opened: Opener, name: str, attributes: dict[str, Any]
) -> None:
    call = Call("attention", _drawn(q=(2, 4, 3, 5), k=(2, 2, 6, 5), v=(2, 2, 6, 3)), attributes)
    assert wrong(opened(name), call) == {}


@needs_transformers
def test_llama_norm(opened: Opener) -> None:
    call = Call("rms_norm", _drawn(x=(2, 3, 5), weight=(5,)))
    assert wrong(opened("transformers.llama.norm"), call) == {}


@needs_mambapy
@pytest.mark.parametrize("steps", [1, 2, 3, 4, 5, 8, 9])
def test_mambapy_scans_any_length(opened: Opener, steps: int) -> None:
    wide, mixed = (2, steps, 3), (2, steps, 2)
    selective = _drawn(u=wide, delta=wide, a=(3, 2), b=mixed, c=mixed, d=(3,))
    affine, session = _drawn(a=wide, b=wide, x=wide), opened("mambapy.scan")
    assert wrong(session, Call("affine_scan", affine), "tree") == {}
    assert wrong(session, Call("selective_scan", selective)) == {}


@needs_mambapy
def test_mambapy_norm(opened: Opener) -> None:
    call = Call("rms_norm", _drawn(x=(2, 3, 5), weight=(5,)))
    assert wrong(opened("mambapy.norm"), call) == {}
