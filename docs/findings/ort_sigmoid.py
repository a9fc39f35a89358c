"""Sigmoid is 0 from -18 on, and good to 6e-8 of 1 only.

Seen with onnxruntime 1.32 on a CPU. At -15 it is 3.576e-07, 17 % above 3.059e-07; at -60, 0 where
8.8e-27 is due, a normal number. SiLU, exported as x * Sigmoid(x), is 0 from -18 on as well, where
-2.7e-07 is due. torch.sigmoid is good to 2 units in the last place.
"""

import math

import numpy as np
import onnxruntime
from onnx import TensorProto, helper

node = helper.make_node("Sigmoid", ["x"], ["y"])
x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [None]) for n in "xy")
opset = helper.make_opsetid("", 18)
model = helper.make_model(
    helper.make_graph([node], "g", [x], [y]), opset_imports=[opset], ir_version=10
)
session = onnxruntime.InferenceSession(
    model.SerializeToString(), providers=["CPUExecutionProvider"]
)
wrong = []
for at in (-15.0, -18.0, -60.0):
    got = session.run(None, {"x": np.array([at], np.float32)})[0].item()
    due = 1.0 / (1.0 + math.exp(-at))
    wrong += [] if abs(got - due) < 1e-5 * due else [f"{at}: {got:.4g}, should be {due:.4g}"]
assert not wrong, f"sigmoid of {'; of '.join(wrong)}"
