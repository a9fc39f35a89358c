"""torch.models: every model as a torch module whose parameters are cut from one vector."""

from __future__ import annotations

from torch import Tensor

from assay.impl.backends.torch_models_catalogue import build
from assay.impl.backends.torch_models_state import run
from assay.impl.contract import Contract
from assay.impl.protocol import implements
from assay.impl.torch_backend import TorchBackend


class TorchModels(TorchBackend):
    """By torch's kernels or written out, as the mode says: attention, recurrences, scans and
    transforms.
    """

    contract = Contract(
        name="torch.models",
        dtypes=("float64",),
        provider="ATen",
        modes=("fused", "explicit"),
        requires=("torch",),
    )

    def _run(self, name: str, config: str, state: Tensor, x: Tensor) -> Tensor:
        return run(build(name, config, explicit=self.mode == "explicit"), state, x)

    @implements("mlp")
    def mlp(self, state: Tensor, x: Tensor, *, config: str) -> Tensor:
        """[B, I] -> [B, O]."""
        return self._run("mlp", config, state, x)

    @implements("resnet")
    def resnet(self, state: Tensor, x: Tensor, *, config: str) -> Tensor:
        """[B, C, *n] -> [B, V]."""
        return self._run("resnet", config, state, x)

    @implements("vit")
    def vit(self, state: Tensor, x: Tensor, *, config: str) -> Tensor:
        """[B, C, *n] -> [B, V]."""
        return self._run("vit", config, state, x)

    @implements("gpt")
    def gpt(self, state: Tensor, ids: Tensor, *, config: str) -> Tensor:
        """[B, T] -> [B, T, V]."""
        return self._run("gpt", config, state, ids)

    @implements("char_gpt")
    def char_gpt(self, state: Tensor, ids: Tensor, *, config: str) -> Tensor:
        """[B, T] -> [B, T, V]."""
        return self._run("char_gpt", config, state, ids)

    @implements("rnn_lm")
    def rnn_lm(self, state: Tensor, x: Tensor, *, config: str) -> Tensor:
        """[B, T, V] -> [B, T, V]."""
        return self._run("rnn_lm", config, state, x)

    @implements("lstm_lm")
    def lstm_lm(self, state: Tensor, x: Tensor, *, config: str) -> Tensor:
        """[B, T, V] -> [B, T, V]."""
        return self._run("lstm_lm", config, state, x)

    @implements("mamba_lm")
    def mamba_lm(self, state: Tensor, x: Tensor, *, config: str) -> Tensor:
        """[B, T, V] -> [B, T, V]."""
        return self._run("mamba_lm", config, state, x)

    @implements("lstm_regression")
    def lstm_regression(self, state: Tensor, x: Tensor, *, config: str) -> Tensor:
        """[B, T, I] -> [B, T, O]."""
        return self._run("lstm_regression", config, state, x)

    @implements("fno")
    def fno(self, state: Tensor, x: Tensor, *, config: str) -> Tensor:
        """[B, *n, 1] -> [B, *n, 1]."""
        return self._run("fno", config, state, x)
