"""Label smoothing is dropped when cross entropy is exported.

Seen with torch 2.13.0 and onnxruntime 1.32, at opsets 18 and 23: the graph is one
SoftmaxCrossEntropyLoss, which has no such attribute, and nothing warns. For logits 1, 2, 4 of class
0 and a smoothing of 1/2, half of 3.1698 and half of the mean (3.1698 + 2.1698 + 0.1698) / 3 =
1.8365 are due: 2.5032.
"""

import io

import numpy as np
import onnxruntime
import torch
from torch.nn import functional


class Loss(torch.nn.Module):
    """Cross entropy with a smoothing of 1/2."""

    def forward(self, logits, targets):
        """The mean."""
        return functional.cross_entropy(logits, targets, label_smoothing=0.5)


logits, targets = torch.tensor([[1.0, 2.0, 4.0]]), torch.tensor([0])
program = torch.onnx.export(
    Loss().eval(), (logits, targets), dynamo=True, opset_version=18, verbose=False
)
stream = io.BytesIO(program.model_proto.SerializeToString())
session = onnxruntime.InferenceSession(stream.read(), providers=["CPUExecutionProvider"])
names = [entry.name for entry in session.get_inputs()]
got = session.run(None, dict(zip(names, (logits.numpy(), targets.numpy()), strict=True)))[0]
due = Loss()(logits, targets).item()
assert np.allclose(got, due), f"smoothed loss = {got.item():.4f}, should be {due:.4f}"
