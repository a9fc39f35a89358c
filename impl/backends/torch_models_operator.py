"""The Fourier neural operator as a torch module, by fast transforms or by matrices of waves."""

from __future__ import annotations

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from assay.impl.backends import torch_models_fields as rules
from assay.impl.backends.torch_models_state import Part, Tensors, parts_of, same, turned, under

WAYS = ("fast", "per_axis", "dense")
"""How a transform is computed: by torch.fft, by a matrix for each axis, by one for the grid."""


def waves(phase: Tensor, n: int, like: Tensor) -> Tensor:
    """exp(-2 pi i phase / n) of whole phases, which are reduced before they are rounded; real after
    half a turn, as the sine of the rounded angle is not.
    """
    turn = phase % n
    angle = torch.where(2 * turn > n, turn - n, turn).to(like) * (-2.0 * math.pi / n)
    other = (2 * turn != n).to(like)
    return torch.complex(angle.cos(), angle.sin() * other)


def matrices(grid: tuple[int, ...], dense: bool, like: Tensor) -> list[Tensor]:
    """The matrix of each axis, or the one of the whole grid in row-major order. Phases are whole
    numbers, whose products GPUs do not offer: they are made on the CPU.
    """
    places = [torch.arange(n) for n in grid]
    if not dense:
        return [waves(torch.outer(x, x), n, like) for x, n in zip(places, grid, strict=True)]
    turn = math.lcm(*grid)
    at = torch.cartesian_prod(*places).reshape(math.prod(grid), len(grid))
    scale = torch.tensor([turn // n for n in grid])
    return [waves((at * scale) @ at.T, turn, like)]


def transform(x: Tensor, way: str, *, inverse: bool = False) -> Tensor:
    """The discrete Fourier transform of a grid [B, *n, w]."""
    grid, axes = tuple(x.shape[1:-1]), tuple(range(1, x.ndim - 1))
    if way == "fast":
        return torch.fft.ifftn(x, dim=axes) if inverse else torch.fft.fftn(x, dim=axes)
    found = matrices(grid, way == "dense", x.real)
    y = x.flatten(1, -2) if way == "dense" else x
    y = y if y.is_complex() else torch.complex(y, torch.zeros_like(y))
    for axis, matrix in enumerate(found, 1):
        wave = matrix.conj() if inverse else matrix
        y = (y.movedim(axis, -1) @ wave).movedim(-1, axis)
    return y.reshape(x.shape) / (math.prod(grid) if inverse else 1)


def half_transform(x: Tensor, bins: int, way: str) -> Tensor:
    """The first bins of the half spectrum of signals [B, n, w]."""
    if way == "fast":
        return torch.fft.rfft(x, dim=1)[:, :bins]
    wave = half_waves(x.shape[1], bins, x)
    y = torch.complex(x, torch.zeros_like(x))
    return (y.movedim(1, -1) @ wave.T).movedim(-1, 1)


def half_inverse(spectrum: Tensor, n: int, way: str) -> Tensor:
    """The real signal of n points whose half spectrum begins so and is 0 beyond."""
    bins = spectrum.shape[1]
    if way == "fast":
        rest = spectrum.new_zeros(spectrum.shape[0], n // 2 + 1 - bins, spectrum.shape[2])
        return torch.fft.irfft(torch.cat([spectrum, rest], dim=1), n=n, dim=1)
    # A bin stands for its mirror too; the bins 0 and n / 2 have none, and their waves are real.
    pairs = ((2 * torch.arange(bins, device=spectrum.device)) % n != 0).to(spectrum.real)[:, None]
    wave = half_waves(n, bins, spectrum.real)
    re, im = spectrum.real * (1 + pairs), 2 * spectrum.imag
    y = re.movedim(1, -1) @ wave.real + im.movedim(1, -1) @ wave.imag
    return y.movedim(-1, 1) / n


def half_waves(n: int, bins: int, like: Tensor) -> Tensor:
    """The waves of the first bins [bins, n]."""
    k, x = torch.arange(bins), torch.arange(n)
    return waves(torch.outer(k, x), n, like)


class SpectralBlock(nn.Module):
    """activation(spectral convolution + skip): each frequency of the band is multiplied by a matrix
    of its own.

    The weight is complex [w, w, *frequencies]: of the whole grid, or of the first bins of the half
    spectrum of one axis.
    """

    def __init__(
        self,
        width: int,
        spatial: tuple[int, ...],
        modes: tuple[int, ...],
        activation: str,
        *,
        half: bool,
        way: str,
    ) -> None:
        super().__init__()
        self.spatial, self.modes, self.halved, self.way = spatial, modes, half, way
        frequencies = modes if half else spatial
        self.spectral = nn.Parameter(torch.zeros(width, width, *frequencies, dtype=torch.complex64))
        self.skip = nn.Linear(width, width)
        self.activation = rules.ACTIVATIONS[activation]

    def forward(self, x: Tensor) -> Tensor:
        """The shape of x [B, *n, w]."""
        convolved = self.by_half(x) if self.halved else self.by_grid(x)
        return self.activation(convolved + self.skip(x))

    def by_grid(self, x: Tensor) -> Tensor:
        """The real part of what the frequencies -m .. m - 1 of every axis give."""
        mixed = torch.einsum("b...i,io...->b...o", transform(x, self.way), self.spectral)
        return transform(mixed * self.kept(x.device), self.way, inverse=True).real

    def kept(self, device: torch.device) -> Tensor:
        """Which frequencies of the grid pass [*n, 1]."""
        mask = torch.ones((), dtype=torch.bool, device=device)
        for n, m in zip(self.spatial, self.modes, strict=True):
            k = torch.arange(n, device=device)
            mask = mask[..., None] & ((k < m) | (k >= n - m))
        return mask[..., None]

    def by_half(self, x: Tensor) -> Tensor:
        """What the first bins of the half spectrum give."""
        spectrum = half_transform(x, self.modes[0], self.way)
        mixed = torch.einsum("bki,iok->bko", spectrum, self.spectral)
        return half_inverse(mixed, x.shape[1], self.way)

    def parts(self) -> Iterator[Part]:
        """Real and imaginary parts [frequencies, in, out], the skip in-by-out, its bias."""
        width, _, *frequencies = self.spectral.shape

        def there(re: Tensor, im: Tensor) -> Tensors:
            flat = torch.complex(re, im).movedim(0, -1)
            return (flat.reshape(width, width, *frequencies),)

        def back(weight: Tensor) -> Tensors:
            flat = weight.reshape(width, width, -1).movedim(-1, 0)
            return flat.real, flat.imag

        shape = (math.prod(frequencies), width, width)
        yield Part((shape, shape), ("spectral",), there, back)
        yield turned("skip.weight", self.skip.weight)
        yield same("skip.bias", self.skip.bias)


class FNO(nn.Module):
    """Lift, blocks, project.

    transform  per_axis: the library's fast transforms; dense: one matrix for the grid
    explicit   matrices of waves for each axis in place of fast transforms
    """

    def __init__(
        self,
        spatial: tuple[int, ...] = (32,),
        modes: tuple[int, ...] = (8,),
        width: int = 8,
        layers: int = 1,
        spectrum: str = "full",
        transform: str = "per_axis",
        activation: str | None = None,
        *,
        explicit: bool = False,
    ) -> None:
        super().__init__()
        half = spectrum == "rfft"
        chosen = activation or ("relu" if half else "tanh")
        rules.refuse(
            *rules.not_whole(width=width, **rules.each("spatial", spatial)),
            *rules.not_per_axis(len(spatial), 0, modes=modes),
            *rules.not_whole(0, layers=layers),
            *rules.not_among(("full", "rfft"), spectrum=spectrum),
            *rules.not_among(("per_axis", "dense"), transform=transform),
            *rules.not_among(tuple(rules.ACTIVATIONS), activation=chosen),
            *(not_halved(spatial, modes) if half else ()),
        )
        way = transform if explicit or transform == "dense" else "fast"
        self.spatial = spatial
        self.lift, self.project = nn.Linear(1, width), nn.Linear(width, 1)
        self.blocks = nn.Sequential(
            *(
                SpectralBlock(width, spatial, modes, chosen, half=half, way=way)
                for _ in range(layers)
            )
        )

    def forward(self, x: Tensor) -> Tensor:
        """[B, *n, 1] -> [B, *n, 1]."""
        if tuple(x.shape[1:]) != (*self.spatial, 1):
            raise ValueError(f"field {tuple(x.shape[1:])} must be {(*self.spatial, 1)}")
        return self.project(self.blocks(self.lift(x)))

    def parts(self) -> Iterator[Part]:
        """Lift, blocks, projection."""
        yield from under("lift", pointwise(self.lift))
        for i, block in enumerate(self.blocks):
            yield from under(f"blocks.{i}", parts_of(block))
        yield from under("project", pointwise(self.project))


def pointwise(layer: nn.Linear) -> list[Part]:
    """A linear map that is stored in-by-out."""
    return [turned("weight", layer.weight), same("bias", layer.bias)]


def not_halved(spatial: tuple[int, ...], modes: tuple[int, ...]) -> list[str]:
    """Reasons why there is no half spectrum of these."""
    if len(spatial) != 1:
        return [f"spatial={spatial!r} must have one axis with spectrum='rfft'"]
    most = spatial[0] // 2 + 1 if type(spatial[0]) is int else 0
    wrong = type(modes[0]) is int and modes[0] > most if len(modes) == 1 else False
    return [f"modes={modes!r} must be at most {most} with spectrum='rfft'"] if wrong else []
