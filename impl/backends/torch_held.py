"""A torch module that holds a model's state of its own, to be trained, saved and read back."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from assay.impl.backends.torch_models_catalogue import MODULES, ONE_WAY
from assay.impl.backends.torch_models_fields import fields
from assay.impl.backends.torch_models_state import pack, unpack


@dataclass(frozen=True)
class Held:
    """A module in evaluation: dropouts are off.

    like  a tensor of the format and on the device of the state
    """

    module: nn.Module
    like: Tensor

    def write(self, state: Tensor) -> None:
        """Fill the parameters in place, so that tied ones stay tied."""
        with torch.no_grad():
            for name, values in unpack(self.module, state).items():
                self.module.get_parameter(name).copy_(values)

    def read(self) -> Tensor:
        """The state that the parameters hold now."""
        with torch.no_grad():
            return pack(self.module, dict(self.module.named_parameters()), self.like)

    def trained(self) -> list[nn.Parameter]:
        """Parameters that an optimizer gets, each once."""
        return [p for p in self.module.parameters() if p.requires_grad]


def hold(model: str, config: str, like: Tensor, *, explicit: bool = False) -> Held:
    """The module of a configuration, with any first values; see ``torch_models_catalogue``.

    The random state of the process is as before: what a module draws by itself is not asked for.
    """
    if model not in MODULES:
        raise ValueError(f"model={model!r} is unknown; valid: {', '.join(sorted(MODULES))}")
    way = {} if model in ONE_WAY else {"explicit": explicit}
    with torch.random.fork_rng(devices=[]):
        module = MODULES[model](**fields(config), **way)
    for p in module.parameters():
        # Not by ``module.to``: a real format would drop the imaginary part of a spectrum.
        p.data = p.data.to(like.device, like.dtype.to_complex() if p.is_complex() else like.dtype)
    return Held(module.eval(), like)


def loaded(model: str, config: str, state: Tensor, *, explicit: bool = False) -> Held:
    """The same with a state in it."""
    held = hold(model, config, state, explicit=explicit)
    held.write(state)
    return held
