"""Attention exported at opset 18: rows that see no key, and scales below 0.

Seen with torch 2.13.0 and onnxruntime 1.32. scaled_dot_product_attention gives a row that sees no
key zeros. Its graph at opset 18 turns NaN weights into 0 for boolean masks, but blocks with the
lowest finite number, whose rows are no NaN: the mean of all values comes out. An additive mask of
-inf gives NaN. The scale is split into its root for queries and for keys: NaN below 0, which the
same graph turns into zeros where there is a boolean mask.
"""

import numpy as np
import onnxruntime
import torch
from torch.nn.functional import scaled_dot_product_attention


class Attention(torch.nn.Module):
    """Attention of q to itself."""

    def __init__(self, scale=None):
        super().__init__()
        self.scale = scale

    def forward(self, q, v, mask):
        """The output."""
        return scaled_dot_product_attention(q, q, v, mask, scale=self.scale)


q, v = torch.ones(1, 1, 2, 2), torch.tensor([[[[1.0, 2.0], [3.0, 4.0]]]])
seen = torch.ones(1, 1, 2, 2, dtype=torch.bool)
cases = {
    "a boolean row without keys": (None, ~seen),
    "an additive row without keys": (None, torch.full((1, 1, 2, 2), -torch.inf)),
    "a scale of -1": (-1.0, seen),
}
wrong = []
for name, (scale, mask) in cases.items():
    module = Attention(scale).eval()
    due = module(q, v, mask)[0, 0, 0].tolist()
    program = torch.onnx.export(module, (q, v, mask), dynamo=True, opset_version=18, verbose=False)
    model = program.model_proto.SerializeToString()
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    arrays = (x.numpy() for x in (q, v, mask))
    got = session.run(None, dict(zip((x.name for x in session.get_inputs()), arrays, strict=True)))
    row = got[0][0, 0, 0].tolist()
    wrong += [] if np.allclose(row, due) else [f"{name}: {row}, should be {due}"]
assert not wrong, "; ".join(wrong)
