"""The Fourier neural operator as one would write it in torch, by fast transforms."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from assay.spec.models.fno import FNOConfig
from tests.spec.torch_models.transformers import ACTIVATIONS


class SpectralBlock(nn.Module):
    """act(ifft(mask W fft(x)) + skip(x)) on [B, *n, w]; weights [in, out, *frequencies]."""

    def __init__(self, config: FNOConfig) -> None:
        super().__init__()
        self.config, w = config, config.width
        grid = config.spatial if config.spectrum == "full" else config.modes
        self.spectral = nn.Parameter(torch.zeros(w, w, *grid, dtype=torch.complex128))
        self.skip = nn.Linear(w, w)
        self.activation = ACTIVATIONS[config.nonlinearity]

    def by_fft(self, x: Tensor) -> Tensor:
        axes = tuple(range(1, x.ndim - 1))
        kept = torch.ones((), dtype=torch.bool)
        for n, m in zip(self.config.spatial, self.config.modes, strict=True):
            # Frequencies -m to m - 1 of n, whose order is 0, 1, ..., -2, -1.
            k = torch.fft.fftfreq(n, d=1 / n).round()
            inside = (k >= -m) & (k < m) | torch.tensor(2 * m > n)
            kept = kept[..., None] & inside
        spectrum = torch.fft.fftn(x, dim=axes)
        mixed = torch.einsum("b...i,io...->b...o", spectrum, self.spectral)
        return torch.fft.ifftn(mixed * kept[..., None], dim=axes).real

    def by_rfft(self, x: Tensor) -> Tensor:
        n, m = x.shape[1], self.config.modes[0]
        spectrum = torch.fft.rfft(x, dim=1)[:, :m]
        mixed = torch.einsum("bki,iok->bko", spectrum, self.spectral)
        return torch.fft.irfft(mixed, n=n, dim=1)

    def forward(self, x: Tensor) -> Tensor:
        spectral = self.by_fft(x) if self.config.spectrum == "full" else self.by_rfft(x)
        return self.activation(spectral + self.skip(x))


class FNO(nn.Module):
    """Lift, blocks, project."""

    def __init__(self, config: FNOConfig) -> None:
        super().__init__()
        self.lift, self.project = nn.Linear(1, config.width), nn.Linear(config.width, 1)
        self.blocks = nn.Sequential(*(SpectralBlock(config) for _ in range(config.layers)))

    def forward(self, x: Tensor) -> Tensor:
        return self.project(self.blocks(self.lift(x)))
