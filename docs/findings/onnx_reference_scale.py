"""The reference evaluator's Attention is NaN for scales below 0, and rounds others to float32.

Seen with onnx 1.23. It multiplies queries and keys by sqrt(scale) each. The operator's description
calls the scale a "scaling factor applied to QK^T", with no limit to its sign: for equal keys, the
mean of the values is due at any scale. ONNX Runtime refuses such graphs. The root of 1/8, an exact
attribute, is taken in float32 for float64 inputs too: a score of -24 / 8 gives a weight that is off
by 1e-9.
"""

import math

import numpy as np
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator


def attend(q, k, v, scale):
    """The operator on float64 arrays."""
    node = helper.make_node("Attention", ["q", "k", "v"], ["out"], scale=scale)
    kinds = [helper.make_tensor_value_info(n, TensorProto.DOUBLE, [None] * 4) for n in "qkv"]
    out = helper.make_tensor_value_info("out", TensorProto.DOUBLE, [None] * 4)
    graph = helper.make_graph([node], "g", kinds, [out])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    with np.errstate(all="ignore"):
        return ReferenceEvaluator(model).run(None, {"q": q, "k": k, "v": v})[0].ravel()


ones, values = np.ones((1, 1, 2, 1)), np.array([[[[1.0], [3.0]]]])
query, keys = np.ones((1, 1, 1, 1)), np.array([[[[0.0], [-24.0]]]])
negative = attend(ones, ones, values, -1.0)
small, due = attend(query, keys, np.array([[[[0.0], [1.0]]]]), 0.125)[0], 1 / (1 + math.exp(3.0))
wrong = []
if not np.allclose(negative, 2.0):
    wrong.append(f"scale=-1: {negative}, should be [2, 2]")
if abs(small - due) > 1e-14:
    wrong.append(f"scale=1/8 in float64: {small:.17g}, should be {due:.17g}")
assert not wrong, "; ".join(wrong)
