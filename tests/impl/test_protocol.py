"""How adapters are read: spellings, defaults, refusals."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from assay.impl import Contract, NumpyBackend, Unsupported, implements
from assay.impl.adapt import adapt, host_of
from assay.impl.protocol import operation_of


def test_aliases_are_passed_under_the_adapters_own_names() -> None:
    def kernel(q: Any, k: Any, v: Any, attn_mask: Any = None, is_causal: bool = False) -> None: ...

    operation = operation_of("attention", kernel)
    assert operation.accepted == ("mask", "causal")
    assert operation.spell("attention", {"causal": True}) == {"is_causal": True}


@pytest.mark.parametrize("spelling", ["scale", "sm_scale", "softmax_scale"])
def test_each_spelling_of_scale_is_understood(spelling: str) -> None:
    space: dict[str, Any] = {}
    exec(f"def kernel(q, k, v, *, {spelling}=None): ...", space)
    operation = operation_of("attention", space["kernel"])
    assert operation.spell("attention", {"scale": 0.5}) == {spelling: 0.5}


def test_a_keyword_that_is_not_accepted_is_unsupported_and_never_dropped() -> None:
    operation = operation_of("attention", lambda q, k, v, scale=None: v)
    with pytest.raises(Unsupported, match="does not take offset=3; accepted: scale"):
        operation.spell("attention", {"offset": 3})


def test_a_keyword_without_default_gets_the_ops_default() -> None:
    def kernel(q: Any, k: Any, v: Any, mask: Any, causal: bool) -> None: ...

    operation = operation_of("attention", kernel)
    assert operation.spell("attention", {}) == {"mask": None, "causal": False}


def test_var_keywords_take_everything() -> None:
    operation = operation_of("attention", lambda *args, **rest: None)
    assert operation.accepted is None
    assert operation.spell("attention", {"window": (1, 0)}) == {"window": (1, 0)}


def test_an_unknown_parameter_without_default_is_an_error() -> None:
    with pytest.raises(TypeError, match=r"'dropout'.*no keyword of attention"):
        operation_of("attention", lambda q, k, v, dropout: None)


def test_too_few_positional_parameters_are_an_error() -> None:
    with pytest.raises(TypeError, match="takes 2 positional parameters, but attention passes 3"):
        operation_of("attention", lambda q, k: None)


def test_implements_rejects_an_unknown_op() -> None:
    with pytest.raises(ValueError, match="op='attn'"):
        implements("attn")


def test_one_method_may_implement_nothing_and_a_class_several() -> None:
    class Two(NumpyBackend):
        contract = Contract(name="two")

        @implements("attention")
        def attention(self, q: Any, k: Any, v: Any) -> Any: ...

        @implements("masked_softmax")
        def softmax(self, scores: Any, mask: Any = None) -> Any: ...

        def other(self) -> None: ...

    assert set(Two().operations()) == {"attention", "masked_softmax"}


def test_without_an_offset_keyword_causal_is_square() -> None:
    backend = adapt(lambda q, k, v, causal=False: v, "attention", name="f")
    assert backend.contract.causal_alignment == "offset"
    assert backend.effective_contract().causal_alignment == "square"


@pytest.mark.parametrize("alignment", ["top_left", "bottom_right"])
def test_a_declared_alignment_stands(alignment: Any) -> None:
    backend = adapt(lambda q, k, v, causal=False: v, "attention", name="f")
    backend.contract = Contract(name="f", causal_alignment=alignment)
    assert backend.effective_contract().causal_alignment == alignment


def test_with_an_offset_keyword_the_alignment_is_the_contracts() -> None:
    backend = adapt(lambda q, k, v, causal=False, offset=0: v, "attention", name="f")
    assert backend.effective_contract().causal_alignment == "offset"


def test_a_numpy_function_offers_no_gradients_and_promises_little() -> None:
    contract = adapt(lambda q, k, v: v, "attention").contract
    assert (contract.name, contract.dtypes) == ("_lambda_", ("float32",))
    assert [contract.gradients, contract.grouped_heads, contract.value_width] == [False] * 3


def test_the_host_is_read_from_annotations() -> None:
    def kernel(q: Any, k: Any, v: Any) -> Any: ...

    kernel.__annotations__["q"] = "torch.Tensor"
    assert host_of(kernel) == "torch"
    assert host_of(np.matmul) == "numpy"


def test_unsupported_survives_pickling() -> None:
    copy = pickle.loads(pickle.dumps(Unsupported("attention", "why")))
    assert (copy.op, copy.reason) == ("attention", "why")
