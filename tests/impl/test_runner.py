"""Every kind of misbehaviour is seen, and a sound backend is clean."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import numpy as np
import pytest

from assay.impl.call import Call, Layout, LayoutKind
from assay.impl.session import open_session
from tests.impl.helpers import attention_call, dirt, fake, run_local


@pytest.mark.parametrize("kind", get_args(LayoutKind))
def test_a_sound_backend_is_clean_in_every_layout(kind: LayoutKind) -> None:
    (reply,) = run_local("Sound", attention_call(layouts={name: Layout(kind, 1) for name in "qkv"}))
    assert reply.failure is None
    assert reply.outputs["out"].tolist() == [[[[3, 3]] * 3]]
    assert dirt(reply.hygiene) == {}
    assert reply.hygiene.dtypes == {"out": "float32"}
    assert reply.hygiene.devices == {"out": "cpu"}
    assert reply.seconds > 0


def test_gradients_come_from_the_vjp_method() -> None:
    cotangent = np.full((1, 1, 3, 2), 4, np.float32)
    (reply,) = run_local("Sound", attention_call(cotangents={"out": cotangent}))
    assert set(reply.gradients) == {"q", "k", "v"}
    assert (reply.gradients["v"] == 2).all()
    assert reply.hygiene.dtypes["gradient of v"] == "float32"


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("WritesInput", {"changed_inputs": ("k",)}),
        ("WritesBeyond", {"broken_guards": ("v",)}),
        ("Aliases", {"aliased": (("out", "v"),)}),
        ("SeedsRandom", {"global_state": ("numpy random state",)}),
        ("SetsErrorHandling", {"global_state": ("numpy error handling",)}),
    ],
)
def test_the_observation_names_what_happened(name: str, found: dict[str, Any]) -> None:
    (reply,) = run_local(name, attention_call())
    assert reply.failure is None
    assert dirt(reply.hygiene) == found


def test_a_changed_nan_payload_is_a_changed_input() -> None:
    (reply,) = run_local("WritesNanPayload", attention_call(np.nan))
    assert dirt(reply.hygiene) == {"changed_inputs": ("q",)}


def test_errors_set_by_a_backend_do_not_outlive_its_call() -> None:
    before = np.geterr()
    run_local("SetsErrorHandling", attention_call())
    assert np.geterr() == before


def test_an_output_that_a_later_call_overwrites_is_named_in_the_earlier_reply() -> None:
    first = attention_call()
    second = replace(first, inputs={**first.inputs, "v": first.inputs["v"] + 1})
    replies = run_local("ReusesBuffer", first, second)
    assert replies[0].outputs["out"].flat[0] == 3
    assert [dirt(r.hygiene) for r in replies] == [{"changed_later": ("out",)}, {}]


def test_shared_memory_is_found_when_the_later_call_writes_the_same_values() -> None:
    replies = run_local("ReusesBuffer", attention_call(), attention_call())
    assert dirt(replies[0].hygiene) == {"changed_later": ("out",)}


def test_calls_of_a_sound_backend_share_nothing() -> None:
    replies = run_local("Sound", attention_call(), attention_call(2.0))
    assert [dirt(r.hygiene) for r in replies] == [{}, {}]


def test_an_output_never_written_shows_as_nan() -> None:
    (reply,) = run_local("NeverWrites", attention_call())
    assert np.isnan(reply.outputs["out"]).all()


@pytest.mark.parametrize(
    ("name", "least", "most"), [("Grows", 28, 60), ("GrowsInHoles", 28, 60), ("Sound", 0, 4)]
)
def test_memory_gained_over_the_repeats_is_counted(name: str, least: int, most: int) -> None:
    with open_session(fake(name)) as session:
        (reply,) = session.run([attention_call(repeat=40)])
    assert least << 20 <= reply.hygiene.grown_bytes <= most << 20


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        (
            "ReturnsList",
            "adapter",
            "attention returned out as list of length 1; it must be a numpy.ndarray",
        ),
        ("ReturnsObjects", "adapter", "dtype object; it must hold numbers"),
        ("Raises", "raised", "the kernel says no"),
        ("LeavesByExit", "raised", "4"),
        ("Declines", "unsupported", "only on Tuesdays"),
        ("NotThere", "unsupported", "not implemented"),
    ],
)
def test_what_went_wrong_becomes_a_failure(name: str, kind: str, words: str) -> None:
    (reply,) = run_local(name, attention_call())
    assert reply.failure is not None
    assert reply.failure.kind == kind
    assert words in reply.failure.message
    assert not reply.outputs


def test_the_trace_of_an_exception_starts_in_the_adapter() -> None:
    (reply,) = run_local("Raises", attention_call())
    assert reply.failure is not None
    assert reply.failure.type == "ValueError"
    assert "fakes.py" in reply.failure.trace
    assert "runner.py" not in reply.failure.trace


@pytest.mark.parametrize(
    ("name", "dtype", "shape"),
    [
        ("ReturnsOtherDtype", "float64", (1, 1, 3, 2)),
        ("ReturnsOtherShape", "float32", (1, 1, 3, 1)),
    ],
)
def test_a_wrong_dtype_or_shape_is_reported_and_no_failure(
    name: str, dtype: str, shape: tuple[int, ...]
) -> None:
    (reply,) = run_local(name, attention_call())
    assert reply.failure is None
    assert reply.hygiene.dtypes == {"out": dtype}
    assert reply.outputs["out"].shape == shape


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (attention_call(attributes={"window": (1, 0)}), "does not take window=(1, 0)"),
        (attention_call(cotangents={"out": np.zeros((1, 1, 3, 2), np.float32)}), "no gradient"),
        (Call("masked_softmax", {"scores": np.zeros((1, 2), np.float32)}), "does not implement"),
    ],
)
def test_what_a_backend_cannot_do_is_unsupported(call: Call, words: str) -> None:
    (reply,) = run_local("Aliases", call)
    assert reply.failure is not None
    assert reply.failure.kind == "unsupported"
    assert words in reply.failure.message


def _causal(queries: int, keys: int, offset: int = 0) -> Call:
    q = np.ones((1, 1, queries, 2), np.float32)
    k = np.ones((1, 1, keys, 2), np.float32)
    attributes = {"causal": True, **({"offset": offset} if offset else {})}
    return Call("attention", {"q": q, "k": k, "v": k}, attributes)


@pytest.mark.parametrize(
    ("alignment", "queries", "keys", "offset", "runs"),
    [
        ("square", 3, 3, 0, True),
        ("square", 3, 4, 0, False),
        ("square", 3, 3, 1, False),
        ("top_left", 3, 5, 0, True),
        ("top_left", 3, 5, 2, False),
        ("bottom_right", 3, 5, 2, True),
        ("bottom_right", 3, 5, 0, False),
        ("bottom_right", 3, 3, 0, True),
    ],
)
def test_the_declared_alignment_decides_which_offsets_can_be_asked_for(
    alignment: Any, queries: int, keys: int, offset: int, runs: bool
) -> None:
    from assay.impl.adapt import adapt
    from assay.impl.runner import execute

    backend = adapt(lambda q, k, v, causal=False: v.copy(), "attention", name="f")
    backend.contract = replace(backend.contract, causal_alignment=alignment)
    (reply,) = execute(backend, [_causal(queries, keys, offset)])
    if runs:
        assert reply.failure is None
    else:
        assert reply.failure is not None
        assert f"causal_alignment={alignment!r}" in reply.failure.message


def test_plain_functions_run_under_their_own_spellings() -> None:
    from assay.impl.loading import resolve
    from assay.impl.session import open_session
    from tests.impl.helpers import FAKES

    mask = np.ones((3, 3), bool)
    call = attention_call(attributes={"causal": True})
    call = replace(call, inputs={**call.inputs, "mask": mask})
    target = resolve(f"{FAKES}:plain", op="attention")
    with open_session(target, isolate=False) as session:
        (reply,) = session.run([call])
    assert (reply.outputs["out"] == 3 + 1 + 2).all()
