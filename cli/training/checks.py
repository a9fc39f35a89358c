"""What theory says of a training: its step is the spec's, and its first loss is near ln V."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float64

from assay.cli.command import UsageError
from assay.cli.training.plan import Run
from assay.impl.contract import Contract
from assay.impl.training.data import Examples
from assay.spec.models import head_loss, initial_loss
from assay.spec.models.catalogue import model
from assay.spec.models.flat import pack, stored_in
from assay.spec.models.initialisers import Glorot, Normal
from assay.spec.models.training import TOKEN_MODELS
from assay.spec.ops import op
from assay.spec.optimizers.update import Training

if TYPE_CHECKING:
    from assay.impl.training.torch_trainer import TorchTrainer
    from assay.spec.models.config import Config

SMALL: Mapping[str, int] = {
    "batch": 2, "channels": 2, "classes": 3, "context": 4, "expansion": 2, "feed_forward": 4,
    "head_width": 2, "heads": 1, "hidden": 3, "inputs": 2, "layers": 1, "outputs": 2, "states": 2,
    "taps": 3, "vocabulary": 5, "width": 4,
}  # fmt: skip
"""The most that a size is in the check of a step: errors that travel through deep or wide models
are bounded by more than the numbers themselves.
"""


def small(config: Config) -> Config:
    """The configuration with all of its options and small sizes.

    >>> from assay.spec.models.vit import ViTConfig
    >>> small(ViTConfig(spatial=(32, 32), kernel=(5, 5), pooling="cls")).kernel
    (2, 2)
    """
    changes: dict[str, Any] = {}
    for field in fields(config):
        value, most = getattr(config, field.name), SMALL.get(field.name)
        if most is not None and value is not None:
            changes[field.name] = min(value, most)
        elif isinstance(value, tuple):
            most = {"spatial": 4, "padding": 1, "radius": 1}.get(field.name, 2)
            changes[field.name] = tuple(min(n, most) for n in value)
    return replace(config, **changes)


@dataclass(frozen=True)
class StepCheck:
    """Steps of the trainer on a small model in float64, against those of the spec.

    numbers  losses and parameters that were compared after one step
    bounded  how many of them have a finite bound
    worst    the largest error relative to its bound, after one step and after two; the steps agree
             where it is at most 1

    After two steps both means of Adam hold two different gradients, but then some numbers have no
    bound: where the gradient is 0, as of a key's bias, a step is noise over eps, and nothing tells
    the analysis that the loss does not depend on it.
    """

    numbers: int
    bounded: int
    worst: float

    @property
    def held(self) -> bool:
        """Whether no number is beyond its bound, where there is one."""
        return self.bounded > 0 and self.worst <= 1.0


def _batch(name: str, config: Any, rng: np.random.Generator) -> Examples:
    rows = SMALL["batch"]
    if name in TOKEN_MODELS:
        ids = rng.integers(0, config.vocabulary, (2, rows, config.context))
        return Examples(*ids)
    if name == "fno":
        return Examples(*rng.standard_normal((2, rows, *config.spatial, 1)))
    if name == "lstm_regression":
        sizes = (config.inputs, config.outputs)
        return Examples(*(rng.standard_normal((rows, config.context, n)) for n in sizes))
    images = rng.standard_normal((rows, config.channels, *config.spatial))
    return Examples(images, rng.standard_normal((rows, config.classes)))


def _state(name: str, config: Any, rng: np.random.Generator) -> np.ndarray:
    """First values and noise. Tokens lie far apart, so that norms do not enlarge every error."""
    found = {}
    for path, first in model(name).initialise(config, rng).items():
        noise = rng.normal(0.0, 1.0 if path.endswith("token") else 0.3, first.shape)
        # A rate of a dropout, which is all that has no axes, stays.
        found[path] = first + noise * (first.ndim > 0)
    return pack(name, config, found)


def options_of(how: Training) -> dict[str, Any]:
    """What the optimizer is told."""
    return {name: getattr(how, name) for name in ("lr", "betas", "eps", "weight_decay")}


def check_step(run: Run, contract: Contract, seed: int = 0) -> StepCheck:
    """The claim ``model.one_step`` for the trainer that is used, with the options that are used.

    UsageError where torch has no layers for the configuration.
    """
    from assay.impl.training.torch_trainer import TorchTrainer

    name, how, entry = run.name, run.task.how, op(run.task.subject.op)
    rng, inner = np.random.default_rng(seed), small(run.chosen.config)
    state, batch = _state(name, inner, rng), _batch(name, inner, rng)
    text = json.dumps(asdict(inner))
    inputs = dict(zip([i.name for i in entry.inputs], (state, *batch), strict=True))
    wide = {n: x if x.dtype.kind == "i" else x.astype(np.longdouble) for n, x in inputs.items()}
    try:
        trainer = TorchTrainer(name, text, state, optimizer=how.optimizer, options=options_of(how))
    except ValueError as error:
        raise UsageError(f"torch.models refuses this model: {error}") from error
    losses: list[float] = []
    checks: list[StepCheck] = []
    for steps in (1, 2):
        losses.append(trainer.step(batch, dropouts=False))
        attributes = {**asdict(replace(how, steps=steps)), "model": name, "config": text}
        with np.errstate(all="ignore"):
            want = entry.forward(wide, attributes)
            bound = entry.bound(inputs, attributes, contract.arithmetic("float64"))
        found = {"losses": np.array(losses), "state": trainer.state()}
        checks.append(_compared(found, want, bound))
    return replace(checks[0], worst=max(check.worst for check in checks))


def _compared(
    found: Mapping[str, np.ndarray], want: Mapping[str, np.ndarray], bound: Mapping[str, np.ndarray]
) -> StepCheck:
    away = np.concatenate([np.abs(found[n] - want[n]) for n in found]).astype(np.float64)
    within = np.concatenate([bound[n] for n in found])
    with np.errstate(all="ignore"):
        ratios = np.where(away == 0, 0.0, away / within)
    worst = float(np.where(np.isnan(ratios), np.inf, ratios).max())
    return StepCheck(len(away), int(np.isfinite(within).sum()), worst)


@dataclass(frozen=True)
class FirstLoss:
    """The loss of the first state where every symbol is the target equally often.

    low, high  where theory puts it, but for one sound state in a billion
    """

    loss: float
    low: float
    high: float

    @property
    def held(self) -> bool:
        """Whether it lies there."""
        return self.low <= self.loss <= self.high


def check_first_loss(
    name: str, config: Config, trainer: TorchTrainer, inputs: np.ndarray
) -> FirstLoss | None:
    """By ``initial_loss`` behind a norm, by ``head_loss`` for a head that is drawn Glorot-uniform.

    None for a Glorot-uniform table that is the head as well, of which no theorem is known here.
    """
    drawn = {p.name: p.init for p in stored_in(name, config)}
    loss = balanced(trainer.outputs(inputs).astype(np.float64))
    if isinstance(drawn.get("head.weight"), Glorot):
        hidden = trainer.into_head(inputs)
        rows = hidden.reshape(-1, hidden.shape[-1])
        return FirstLoss(loss, *head_loss.interval(vars(config)["vocabulary"], rows))
    if isinstance(drawn.get("head.weight", drawn["token"]), Normal):
        return FirstLoss(loss, *initial_loss.interval(name, config))
    return None


def balanced(logits: Float64[np.ndarray, "*b V"]) -> float:
    """The mean cross-entropy where every symbol is the target as often as any other.

    >>> balanced(np.zeros((2, 4))).__round__(4)
    1.3863
    """
    top = logits.max(axis=-1, keepdims=True)
    total = np.log(np.exp(logits - top).sum(axis=-1)) + top[..., 0]
    return float((total - logits.mean(axis=-1)).mean())
