"""Spectral convolutions and the Fourier neural operator's block in the catalogue.

The transforms have an error rule, which covers dense and fast forms
(``spec/rounding/transforms.py``), and a complex product is one sum of 2 w products. Not covered are
products of complex matrices by three real ones instead of four (Karatsuba, "3M"), whose imaginary
part may lose what the real part is large by.
"""

from __future__ import annotations

import numpy as np

from assay.spec.ops.entry import Arrays, Attribute, Attributes, Input, Op
from assay.spec.spectral import fno_block, rfft_conv, spectral_conv

_MODES = Attribute(
    "modes", None, "frequencies kept: -m .. m - 1, one m or one for each axis; None is all"
)


def _forward(inputs: Arrays, attributes: Attributes) -> dict[str, np.ndarray]:
    x, re, im = (inputs[n] for n in ("x", "re", "im"))
    return {"out": spectral_conv.spectral_conv(x, re, im, **attributes)}


def _backward(inputs: Arrays, cotangents: Arrays, attributes: Attributes) -> dict[str, np.ndarray]:
    x, re, im = (inputs[n] for n in ("x", "re", "im"))
    gradients = spectral_conv.spectral_conv_backward(x, re, im, cotangents["out"], **attributes)
    return gradients._asdict()


def _rfft_forward(inputs: Arrays, attributes: Attributes) -> dict[str, np.ndarray]:
    x, re, im = (inputs[n] for n in ("x", "re", "im"))
    return {"out": rfft_conv.spectral_conv_rfft(x, re, im)}


def _rfft_backward(
    inputs: Arrays, cotangents: Arrays, attributes: Attributes
) -> dict[str, np.ndarray]:
    x, re, im = (inputs[n] for n in ("x", "re", "im"))
    return rfft_conv.spectral_conv_rfft_backward(x, re, im, cotangents["out"])._asdict()


def _block_forward(inputs: Arrays, attributes: Attributes) -> dict[str, np.ndarray]:
    x, re, im, skip, bias = (inputs[n] for n in ("x", "re", "im", "skip", "bias"))
    return {"out": fno_block.fno_block(x, re, im, skip, bias, **attributes)}


def _block_backward(
    inputs: Arrays, cotangents: Arrays, attributes: Attributes
) -> dict[str, np.ndarray]:
    x, re, im, skip, bias = (inputs[n] for n in ("x", "re", "im", "skip", "bias"))
    gradients = fno_block.fno_block_backward(x, re, im, skip, bias, cotangents["out"], **attributes)
    return gradients._asdict()


SPECTRAL_CONV = Op(
    name="spectral_conv",
    summary="a matrix over channels for each frequency of the whole spectrum, cut to a band",
    inputs=(
        Input("x", ("B", "*n", "w")),
        Input("re", ("Nf", "w", "w")),
        Input("im", ("Nf", "w", "w")),
    ),
    attributes=(_MODES,),
    outputs={"out": ("B", "*n", "w")},
    forward=_forward,
    backward=_backward,
)

SPECTRAL_CONV_RFFT = Op(
    name="spectral_conv_rfft",
    summary="a matrix over channels for each of the first bins of the half spectrum, one axis",
    inputs=(
        Input("x", ("B", "n", "w")),
        Input("re", ("Nf", "w", "w")),
        Input("im", ("Nf", "w", "w")),
    ),
    attributes=(),
    outputs={"out": ("B", "n", "w")},
    forward=_rfft_forward,
    backward=_rfft_backward,
)

FNO_BLOCK = Op(
    name="fno_block",
    summary="activation of a spectral convolution plus a linear map of each point",
    inputs=(
        Input("x", ("B", "*n", "w")),
        Input("re", ("Nf", "w", "w")),
        Input("im", ("Nf", "w", "w")),
        Input("skip", ("w", "w")),
        Input("bias", ("w",)),
    ),
    attributes=(
        _MODES,
        Attribute("activation", "tanh", "name of the activation"),
        Attribute("half", False, "re and im hold bins of the half spectrum, one axis"),
    ),
    outputs={"out": ("B", "*n", "w")},
    forward=_block_forward,
    backward=_block_backward,
)

SPECTRAL: tuple[Op, ...] = (SPECTRAL_CONV, SPECTRAL_CONV_RFFT, FNO_BLOCK)
