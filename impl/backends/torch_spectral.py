"""torch.fft and torch.dft: spectral convolutions by fast transforms, and by matrices of waves."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce

import torch
from torch import Tensor
from torch.nn import functional

from assay.impl.contract import Contract
from assay.impl.protocol import Unsupported, implements
from assay.impl.torch_backend import TorchBackend

PerAxis = int | Sequence[int]

_ACTIVATIONS: Mapping[str, Callable[[Tensor], Tensor]] = {
    "identity": lambda x: x.clone(),
    "relu": torch.relu,
    # ``functional.gelu`` has a fast erf, good to 6 units in the last place of 1.
    "gelu": lambda x: 0.5 * x * (1.0 + torch.erf(x / math.sqrt(2.0))),
    "gelu_tanh": partial(functional.gelu, approximate="tanh"),
    "silu": functional.silu,
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    # ``functional.softplus`` is linear from 20 on, which float64 can tell from the logarithm.
    "softplus": lambda x: torch.logaddexp(x, torch.zeros_like(x)),
}


def _check_weights(op: str, x: Tensor, re: Tensor, im: Tensor, frequencies: int) -> None:
    """Refuse weights that would broadcast, and grids that no transform takes."""
    wanted = (frequencies, x.shape[-1], x.shape[-1])
    if tuple(re.shape) != wanted or tuple(im.shape) != wanted:
        raise ValueError(f"re {tuple(re.shape)} and im {tuple(im.shape)} must both be {wanted}")
    if not math.prod(x.shape[1:-1]):
        raise Unsupported(op, "torch.fft refuses axes without points")


def _band(sizes: Sequence[int], modes: PerAxis | None, device: torch.device) -> Tensor:
    """Indices of the frequencies -m .. m - 1 of every axis, row-major."""
    each = [modes] * len(sizes) if modes is None or isinstance(modes, int) else list(modes)
    masks = []
    for n, m in zip(sizes, each, strict=True):
        k = torch.fft.fftfreq(n, 1.0 / n, device=device) if n else torch.zeros(0, device=device)
        bound = n if m is None else m
        # An even axis counts its middle as -n / 2; the band's rule counts every index both ways.
        at = torch.arange(n, device=device)
        masks.append((at < bound) | (k >= -bound) & (k < 0))
    mask = reduce(lambda a, b: a[..., None] & b, masks)
    return mask.flatten().nonzero().squeeze(1)


class _Spectral(TorchBackend):
    """The frequencies of the band are gathered, multiplied, and put back among zeros.

    torch's sigmoid and silu give 0 where the result is subnormal.
    """

    @abstractmethod
    def transformed(self, x: Tensor) -> Tensor:
        """The spectrum of a real grid [B, *n, w]."""

    @abstractmethod
    def returned(self, spectrum: Tensor) -> Tensor:
        """The real part of the inverse transform."""

    @abstractmethod
    def half(self, x: Tensor, bins: int) -> Tensor:
        """The first bins of the half spectrum of [B, n, w]."""

    @abstractmethod
    def whole(self, spectrum: Tensor, n: int) -> Tensor:
        """The real signal of n points that has these first bins."""

    @implements("spectral_conv")
    def spectral_conv(
        self, x: Tensor, re: Tensor, im: Tensor, *, modes: PerAxis | None = None
    ) -> Tensor:
        """Output [B, *n, w]."""
        count = math.prod(x.shape[1:-1])
        _check_weights("spectral_conv", x, re, im, count)
        kept = _band(x.shape[1:-1], modes, x.device)
        spectrum = self.transformed(x).reshape(x.shape[0], count, x.shape[-1])
        weight = torch.complex(re[kept], im[kept])
        mixed = torch.einsum("bnw,nwv->bnv", spectrum[:, kept], weight)
        among_zeros = torch.zeros_like(spectrum).index_copy(1, kept, mixed)
        return self.returned(among_zeros.reshape(x.shape))

    @implements("spectral_conv_rfft")
    def spectral_conv_rfft(self, x: Tensor, re: Tensor, im: Tensor) -> Tensor:
        """Output [B, n, w]."""
        n, bins = x.shape[1], re.shape[0]
        if x.ndim != 3 or bins > n // 2 + 1:
            raise ValueError(f"{bins} bins do not belong to a signal of shape {tuple(x.shape)}")
        _check_weights("spectral_conv_rfft", x, re, im, bins)
        spectrum = self.half(x, bins)
        mixed = torch.einsum("bnw,nwv->bnv", spectrum, torch.complex(re, im))
        return self.whole(mixed, n)

    @implements("fno_block")
    def fno_block(
        self,
        x: Tensor,
        re: Tensor,
        im: Tensor,
        skip: Tensor,
        bias: Tensor,
        *,
        modes: PerAxis | None = None,
        activation: str = "tanh",
        half: bool = False,
    ) -> Tensor:
        """Output [B, *n, w]."""
        if half:
            spectral = self.spectral_conv_rfft(x, re, im)
        else:
            spectral = self.spectral_conv(x, re, im, modes=modes)
        return _ACTIVATIONS[activation](spectral + x @ skip + bias)


class TorchFft(_Spectral):
    """``torch.fft.fftn`` over the grid, or ``fft`` along one axis after another; ``rfft`` and
    ``irfft`` for half spectra.
    """

    contract = Contract(
        name="torch.fft",
        dtypes=("float32", "float64"),
        provider="ATen, MKL",
        subnormals=False,
        modes=("no_grad", "grad", "axes.grad"),
        requires=("torch",),
    )

    def transformed(self, x: Tensor) -> Tensor:
        """By all axes at once, or one by one."""
        axes = tuple(range(1, x.ndim - 1))
        if not self.mode.startswith("axes"):
            return torch.fft.fftn(x, dim=axes)
        return reduce(lambda y, a: torch.fft.fft(y, dim=a), axes, x.to(_complex(x)))

    def returned(self, spectrum: Tensor) -> Tensor:
        """By all axes at once, or one by one."""
        axes = tuple(range(1, spectrum.ndim - 1))
        if not self.mode.startswith("axes"):
            return torch.fft.ifftn(spectrum, dim=axes).real.contiguous()
        return reduce(lambda y, a: torch.fft.ifft(y, dim=a), axes, spectrum).real.contiguous()

    def half(self, x: Tensor, bins: int) -> Tensor:
        """``rfft``, cut."""
        return torch.fft.rfft(x, dim=1)[:, :bins]

    def whole(self, spectrum: Tensor, n: int) -> Tensor:
        """``irfft``, which fills up with zeros."""
        return torch.fft.irfft(spectrum, n=n, dim=1)


def _complex(x: Tensor) -> torch.dtype:
    return torch.complex128 if x.dtype == torch.float64 else torch.complex64


class TorchDft(_Spectral):
    """Products with matrices of cosines and sines, [n, n] for each axis or one for the whole
    grid.
    """

    contract = Contract(
        name="torch.dft",
        dtypes=("float32", "float64"),
        provider="ATen",
        subnormals=False,
        modes=("no_grad", "grad", "dense.grad"),
        requires=("torch",),
    )

    def transformed(self, x: Tensor) -> Tensor:
        """From the definition."""
        return self._along(torch.complex(x, torch.zeros_like(x)), -1)

    def returned(self, spectrum: Tensor) -> Tensor:
        """From the definition, over N."""
        count = math.prod(spectrum.shape[1:-1])
        return (self._along(spectrum, 1).real / count).contiguous()

    def half(self, x: Tensor, bins: int) -> Tensor:
        """The whole spectrum, cut; the imaginary part of real bins is left out."""
        spectrum = self._along(torch.complex(x, torch.zeros_like(x)), -1)[:, :bins]
        return torch.complex(spectrum.real, spectrum.imag * _paired(x.shape[1], bins, x))

    def whole(self, spectrum: Tensor, n: int) -> Tensor:
        """Paired bins count twice: once for themselves, once for their mirror."""
        bins = spectrum.shape[1]
        paired = _paired(n, bins, spectrum.real)
        cos, sin = _waves(torch.outer(torch.arange(bins), torch.arange(n)), n, spectrum.real)
        re, im = spectrum.real * (1 + paired), spectrum.imag * (2 * paired)
        back = re.movedim(1, -1) @ cos - im.movedim(1, -1) @ sin
        return (back / n).movedim(-1, 1).contiguous()

    def _along(self, x: Tensor, sign: int) -> Tensor:
        sizes = tuple(x.shape[1:-1])
        if self.mode.startswith("dense"):
            turn, count = math.lcm(*sizes), math.prod(sizes)
            at = torch.cartesian_prod(*(torch.arange(n) for n in sizes)).reshape(count, -1)
            scaled = at * torch.tensor([turn // n for n in sizes])
            flat = x.reshape(x.shape[0], count, x.shape[-1])
            return _product(_waves(scaled @ at.T, turn, x.real), flat, 1, sign).reshape(x.shape)
        for a, n in enumerate(sizes, 1):
            places = torch.arange(n)
            x = _product(_waves(torch.outer(places, places), n, x.real), x, a, sign)
        return x


def _paired(n: int, bins: int, like: Tensor) -> Tensor:
    """1 at bins that have a mirror, 0 at 0 and n / 2, which are real; [bins, 1]."""
    return ((2 * torch.arange(bins)) % n != 0).to(like.device, like.dtype)[:, None]


def _waves(phase: Tensor, n: int, like: Tensor) -> tuple[Tensor, Tensor]:
    """cos and sin of 2 pi phase / n, of an angle within half a turn."""
    turn = phase % n
    turn = torch.where(2 * turn > n, turn - n, turn)
    angle = turn.to(like.device, like.dtype) * (2.0 * math.pi / n)
    return torch.cos(angle), torch.sin(angle)


def _product(waves: tuple[Tensor, Tensor], x: Tensor, axis: int, sign: int) -> Tensor:
    """sum over the axis of (re + i im) (cos + i sign sin), in real arithmetic."""
    cos, sin = waves

    def along(part: Tensor, matrix: Tensor) -> Tensor:
        return (part.movedim(axis, -1) @ matrix).movedim(-1, axis)

    re = along(x.real, cos) - sign * along(x.imag, sin)
    im = along(x.imag, cos) + sign * along(x.real, sin)
    return torch.complex(re, im)
