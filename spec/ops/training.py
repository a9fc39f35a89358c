"""Whole models in training, in the catalogue: steps of an optimizer, the first loss, the state as a
library holds it, and what a pass costs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from assay.spec.arithmetic import Arithmetic
from assay.spec.inexact import running_bound
from assay.spec.models.catalogue import model
from assay.spec.models.costs import cache_scalars, training_flops
from assay.spec.models.flat import configure, pack, unpack
from assay.spec.models.initial_loss import interval
from assay.spec.models.networks.catalogue import NETWORKS
from assay.spec.models.networks.loss import token_loss
from assay.spec.models.residuals import branches, steps_of
from assay.spec.models.state_bytes import octets
from assay.spec.models.training import train, trained
from assay.spec.ops.entry import Arrays, Attribute, Attributes, Bound, Input, Op
from assay.spec.optimizers.forms import update_in_any_form
from assay.spec.optimizers.update import Training, Update, update

Results = dict[str, np.ndarray]

GPT = '{"vocabulary": 7, "context": 6, "layers": 1, "heads": 2, "width": 4}'
MLP = '{"inputs": 3, "hidden": [5], "outputs": 4}'
RESNET = '{"channels": 4, "spatial": [5, 6], "hidden": 2, "classes": 7}'


def _no_gradients(inputs: Arrays, cotangents: Arrays, attributes: Attributes) -> Results:
    """What training does is not differentiated again."""
    return {}


def _no_gradient_bounds(
    inputs: Arrays, cotangents: Arrays, attributes: Attributes, arithmetic: Arithmetic
) -> Results:
    return {}


def _exact(op_outputs: Any) -> Bound:
    """Counts and bytes have no error."""

    def bound(inputs: Arrays, attributes: Attributes, arithmetic: Arithmetic) -> Results:
        return {n: np.zeros(x.shape) for n, x in op_outputs(inputs, attributes).items()}

    return bound


def _choice(default: str, config: str) -> tuple[Attribute, Attribute]:
    return (
        Attribute("model", default, "name of the model"),
        Attribute("config", config, "fields that differ from the model's, as JSON"),
    )


def _state() -> Input:
    return Input("state", ("P",), differentiable=False)


def how(attributes: Mapping[str, Any]) -> Training:
    """The attributes of a step that a call gives."""
    names = {f.name for f in fields(Training)}
    return Training(**{n: x for n, x in attributes.items() if n in names})


def _options() -> tuple[Attribute, ...]:
    start, meanings = Training(), {
        "optimizer": "sgd, adam or adamw",
        "lr": "learning rate",
        "betas": "shares of the old in Adam's two means",
        "eps": "added to the root of the second",
        "weight_decay": "share of a parameter, added to its gradient or, by adamw, taken off it",
        "steps": "on the same batch, from rest",
    }  # fmt: skip
    return tuple(Attribute(n, getattr(start, n), text) for n, text in meanings.items())


def _training(name: str, summary: str, read: Input, target: Input, first: str, config: str) -> Op:
    def run(inputs: Arrays, attributes: Attributes, step: Update) -> Results:
        chosen = attributes.get("model", first)
        given = configure(chosen, attributes.get("config", config))
        batch = inputs[read.name], inputs[target.name]
        losses, state = train(chosen, given, inputs["state"], *batch, how(attributes), update=step)
        return {"losses": losses, "state": state}

    def forward(inputs: Arrays, attributes: Attributes) -> Results:
        return run(inputs, attributes, update)

    def bound(inputs: Arrays, attributes: Attributes, arithmetic: Arithmetic) -> Results:
        return running_bound(lambda x: run(x, attributes, update_in_any_form), inputs, arithmetic)

    return Op(
        name=name,
        summary=summary,
        inputs=(_state(), read, target),
        attributes=(*_choice(first, config), *_options()),
        outputs={"losses": ("N1",), "state": ("P",)},
        forward=forward,
        backward=_no_gradients,
        bound=bound,
        backward_bound=_no_gradient_bounds,
    )


def _ids(name: str) -> Input:
    return Input(name, ("B", "T"), differentiable=False, holds="int")


def _model_state(inputs: Arrays, attributes: Attributes) -> Results:
    name = attributes.get("model", "mlp")
    config = configure(name, attributes.get("config", MLP))
    kept = pack(name, config, unpack(name, config, inputs["state"]))
    return {"octets": octets(kept), "trained": np.array(float(trained(name, config).sum()))}


def _trace(inputs: Arrays, attributes: Attributes) -> Results:
    name = attributes.get("model", "resnet")
    config = configure(name, attributes.get("config", RESNET))
    unpack(name, config, inputs["state"])
    batch, tokens = attributes.get("batch", 1), attributes.get("tokens", 1)
    steps = steps_of(name, config, batch, tokens)
    kept = 0
    if model(name).decoding_state:
        kept = cache_scalars(config.layers, batch, tokens, config.width)
    return {
        "flops": np.array(float(training_flops(steps))),
        "cache": np.array(float(kept)),
        "branches": branches(steps),
    }


def _first(attributes: Attributes) -> tuple[str, Any]:
    name = attributes.get("model", "gpt")
    return name, configure(name, attributes.get("config", GPT))


def _initial_loss(inputs: Arrays, attributes: Attributes) -> Results:
    name, config = _first(attributes)
    rng = np.random.default_rng(attributes.get("seed", 0))
    params = model(name).initialise(config, rng)
    logits = NETWORKS[name].forward(config, params, inputs["ids"])
    weights, targets = inputs["weights"], inputs["targets"]
    if weights.shape != targets.shape[1:]:
        raise ValueError(f"weights {weights.shape} must be one for each of {targets.shape[1:]}")
    each = [token_loss(logits[:, [t]], targets[:, [t]]) for t in range(len(weights))]
    return {"loss": np.asarray((weights * np.array(each)).sum() / weights.sum())}


def _initial_bound(inputs: Arrays, attributes: Attributes, arithmetic: Arithmetic) -> Results:
    """Two sound first states have losses in one interval (``spec.models.initial_loss``)."""
    low, high = interval(*_first(attributes))
    return {"loss": np.array(high - low)}


MODEL_STATE = Op(
    name="model_state",
    summary="a model's state after a round trip through a library's own: its bytes, and how many"
    " numbers are trained",
    inputs=(_state(),),
    attributes=_choice("mlp", MLP),
    outputs={"octets": ("P", "W"), "trained": ()},
    forward=_model_state,
    backward=_no_gradients,
    bound=_exact(_model_state),
    backward_bound=_no_gradient_bounds,
)

MODEL_TRACE = Op(
    name="model_trace",
    summary="what a pass does: operations of forward and backward, numbers in the cache of a"
    " prefill, shapes into and out of each residual branch",
    inputs=(_state(),),
    attributes=(
        *_choice("resnet", RESNET),
        Attribute("batch", 1, "rows of the batch"),
        Attribute("tokens", 1, "length of a sequence"),
    ),
    outputs={"flops": (), "cache": (), "branches": ("R", "2", "K")},
    forward=_trace,
    backward=_no_gradients,
    bound=_exact(_trace),
    backward_bound=_no_gradient_bounds,
)

INITIAL_LOSS = Op(
    name="initial_loss",
    summary="loss of a model in the first state that its own seed draws: the mean over the batch"
    " at each place, weighted over places",
    inputs=(Input("weights", ("T",), differentiable=False), _ids("ids"), _ids("targets")),
    attributes=(*_choice("gpt", GPT), Attribute("seed", 0, "of the first values")),
    outputs={"loss": ()},
    forward=_initial_loss,
    backward=_no_gradients,
    bound=_initial_bound,
    backward_bound=_no_gradient_bounds,
)

TRAINING: tuple[Op, ...] = (
    _training(
        "language_step",
        "steps of an optimizer on a language model: the loss before each, and the state",
        _ids("ids"),
        _ids("targets"),
        "gpt",
        GPT,
    ),
    _training(
        "regression_step",
        "the same by the mean squared error, on a model that reads numbers",
        Input("x", ("B", "I"), differentiable=False),
        Input("targets", ("B", "O"), differentiable=False),
        "mlp",
        MLP,
    ),
    MODEL_STATE,
    MODEL_TRACE,
    INITIAL_LOSS,
)
