"""NaN in a value that the mask blocks reaches the output of ONNX's Attention, as 0 * NaN.

Seen with onnxruntime 1.32 on a CPU, and with the reference evaluator of onnx 1.23. The operator's
description: True "indicates that the element should take part in attention". At opset 18, where
torch exports attention as MatMul, Softmax and MatMul, the same comes out.
"""

import numpy as np
import onnxruntime
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

node = helper.make_node("Attention", ["q", "q", "v", "mask"], ["out"])
kinds = {"q": TensorProto.FLOAT, "v": TensorProto.FLOAT, "mask": TensorProto.BOOL}
inputs = [helper.make_tensor_value_info(n, kind, [None] * 4) for n, kind in kinds.items()]
out = helper.make_tensor_value_info("out", TensorProto.FLOAT, [None] * 4)
graph = helper.make_graph([node], "g", inputs, [out])
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=11)
session = onnxruntime.InferenceSession(
    model.SerializeToString(), providers=["CPUExecutionProvider"]
)
arrays = {
    "q": np.ones((1, 1, 2, 2), np.float32),
    "v": np.array([[[[1.0, 2.0], [np.nan, np.nan]]]], np.float32),
    "mask": np.array([[[[True, False]] * 2]]),
}
runs = {"ONNX Runtime": session, "the reference": ReferenceEvaluator(model)}
rows = {name: run.run(None, arrays)[0][0, 0, 0] for name, run in runs.items()}
wrong = [f"{n}: {row}, should be [1, 2]" for n, row in rows.items() if np.isnan(row).any()]
assert not wrong, "; ".join(wrong)
