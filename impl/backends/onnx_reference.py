"""onnx.reference: the Attention operator as ONNX's own reference evaluator computes it in numpy."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from assay.impl.backends.position_masks import Window, merge, position_mask
from assay.impl.backends.shapes import check_attention
from assay.impl.contract import Contract
from assay.impl.numpy_backend import NumpyBackend
from assay.impl.protocol import Unsupported, implements

_OPSET = 23
_KINDS = {
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
    "bool": TensorProto.BOOL,
}


class OnnxReference(NumpyBackend):
    """One node, without past keys; offsets and windows become masks.

    The operator's description gives a row that sees no key zeros, and keeps what a mask blocks from
    taking part. It multiplies queries and keys by the root of the scale.
    """

    contract = Contract(
        name="onnx.reference",
        dtypes=("float32", "float64"),
        provider="ONNX reference evaluator, numpy",
        grouped_heads=True,
        value_width=True,
        gradients=False,
        requires=("onnx",),
    )

    @implements("attention")
    def attention(
        self,
        q: np.ndarray,
        k: np.ndarray,
        v: np.ndarray,
        *,
        mask: np.ndarray | None = None,
        causal: bool = False,
        offset: int = 0,
        window: Window | None = None,
        scale: float | None = None,
    ) -> np.ndarray:
        """Output [B, H, L, Dv]."""
        check_attention(q, k, v, mask)
        if not k.shape[2] or not q.shape[3]:
            raise Unsupported("attention", "the evaluator has no value without keys or width")
        flag = causal and offset == 0 and window is None
        seen = position_mask(
            q.shape[2], k.shape[2], causal=causal and not flag, offset=offset, window=window
        )
        arrays = {"q": q, "k": k, "v": v}
        merged = merge(mask, seen)
        if merged is not None:
            arrays["mask"] = merged
        kinds = tuple((name, array.dtype.name, array.ndim) for name, array in arrays.items())
        (out,) = _evaluator(kinds, flag, scale).run(None, arrays)
        return np.asarray(out)


@cache
def _evaluator(
    kinds: tuple[tuple[str, str, int], ...], causal: bool, scale: float | None
) -> ReferenceEvaluator:
    """A graph of one node; ``kinds``: name, dtype and number of axes of each input."""
    names = [name for name, _, _ in kinds]
    attributes: dict[str, Any] = {
        "is_causal": int(causal),
        **({} if scale is None else {"scale": scale}),
    }
    node = helper.make_node("Attention", names, ["out"], **attributes)
    inputs = [helper.make_tensor_value_info(n, _KINDS[d], [None] * r) for n, d, r in kinds]
    out = helper.make_tensor_value_info("out", _KINDS[kinds[0][1]], [None] * 4)
    graph = helper.make_graph([node], "attention", inputs, [out])
    opset = helper.make_opsetid("", _OPSET)
    return ReferenceEvaluator(helper.make_model(graph, opset_imports=[opset]))
