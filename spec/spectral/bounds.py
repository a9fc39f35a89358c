"""Error bound of the block of a Fourier neural operator: |computed - exact| <= bound.

The three parts in front of the activation, spectral + x skip + bias, may be summed in any order.
Running error analysis covers the sum of three finished parts. A kernel may also add the w products
of x skip onto an accumulator that holds the others already: then each of the w + 2 additions rounds
a partial sum that holds them, gamma_{w+2} (|spectral| + |bias|) more (N. Higham, Accuracy and
Stability of Numerical Algorithms, 2nd ed., section 3.1). The gradient into x is such a sum too.

Spectral convolutions need no file of their own: the transforms have an error rule, which covers
dense and fast forms (``spec/rounding/transforms.py``), and a complex product is one sum of 2 w
products. Not covered are products of complex matrices by three real ones instead of four
(Karatsuba, "3M"), whose imaginary part may lose what the real part is large by.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from assay.spec.arithmetic import Arithmetic, gamma
from assay.spec.inexact import running_bound
from assay.spec.scalars import Array
from assay.spec.spectral.fno_block import activation_named, mix, spectral_part, through_parts

Named = Mapping[Any, Array]


def _onto(total: Any, products: int, *parts: Any) -> Any:
    """``total`` with the error of adding ``products`` products onto ``parts``."""
    held = sum(part.reach for part in parts)
    return total.of(total.value, total.error + gamma(products + 2, total.arithmetic.u_acc) * held)


def _mixed(given: Named, rules: Mapping[str, Any]) -> Any:
    spectral: Any = spectral_part(given["x"], given["re"], given["im"], **rules)
    total = mix(given["x"], spectral, given["skip"], given["bias"])
    return _onto(total, given["skip"].shape[0], spectral, given["bias"])


def _split(attributes: Mapping[str, Any]) -> tuple[Any, dict[str, Any]]:
    rules = dict(attributes)
    return activation_named(rules.pop("activation", "tanh")), rules


def fno_block_bound(
    inputs: Mapping[str, Array], attributes: Mapping[str, Any], arithmetic: Arithmetic
) -> Array:
    """Bound on the error of ``fno_block``."""
    act, rules = _split(attributes)

    def forward(given: Named) -> dict[str, Array]:
        return {"out": act.forward(_mixed(given, rules))}

    return running_bound(forward, inputs, arithmetic)["out"]


def fno_block_backward_bound(
    inputs: Mapping[str, Array],
    cotangent: Array,
    attributes: Mapping[str, Any],
    arithmetic: Arithmetic,
) -> dict[str, Array]:
    """Bounds on the errors of ``fno_block_backward``."""
    act, rules = _split(attributes)

    def backward(given: Named) -> dict[str, Array]:
        behind = act.backward(_mixed(given, rules), given["cotangent"])
        x, re, im, skip = (given[n] for n in ("x", "re", "im", "skip"))
        grads = through_parts(x, re, im, skip, behind, **rules)._asdict()
        without: Any = through_parts(x, re, im, 0 * skip, behind, **rules).x
        return grads | {"x": _onto(grads["x"], skip.shape[0], without)}

    return running_bound(backward, {**inputs, "cotangent": cotangent}, arithmetic)
