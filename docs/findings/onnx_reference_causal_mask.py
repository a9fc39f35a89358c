"""The reference evaluator's Attention takes every query for the first when a mask has one row.

Seen with onnx 1.23. The operator's description lets attn_mask be "broadcastable to 4D tensor",
so one row [1, 1, 1, S] of which nothing is blocked stands for all queries and changes nothing. With
is_causal the evaluator makes the triangle of the mask's rows, of which there is one: each query
sees the first key alone.
"""

import numpy as np
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

QUERIES = np.zeros((1, 1, 2, 1), np.float32)
VALUES = np.array([[[[0.0], [4.0]]]], np.float32)


def attend(mask):
    """Causal attention of equal scores over the values 0 and 4."""
    node = helper.make_node("Attention", ["q", "k", "v", "mask"], ["out"], is_causal=1)
    kinds = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [None] * 4) for n in "qkv"]
    kinds.append(helper.make_tensor_value_info("mask", TensorProto.BOOL, [None] * 4))
    out = helper.make_tensor_value_info("out", TensorProto.FLOAT, [None] * 4)
    graph = helper.make_graph([node], "g", kinds, [out])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
    given = {"q": QUERIES, "k": QUERIES, "v": VALUES, "mask": mask}
    return ReferenceEvaluator(model).run(None, given)[0].ravel()


full, broadcast = attend(np.ones((1, 1, 2, 2), bool)), attend(np.ones((1, 1, 1, 2), bool))
assert np.allclose(full, [0.0, 2.0]), f"a row for each query: {full}, should be [0, 2]"
assert np.allclose(broadcast, [0.0, 2.0]), f"one row for both: {broadcast}, should be [0, 2]"
