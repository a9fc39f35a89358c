"""A transformer block: z = x + attention(norm x), y = z + mlp(norm z); norms after the additions
where it is a post-norm one.
"""

from __future__ import annotations

from dataclasses import replace

from assay.spec.layers.layer import Layer, concat_branches, residual, sequential
from assay.spec.layers.leaves import activation_layer, linear_layer, norm_layer
from assay.spec.layers.self_attention import Sight, attend


def attention_branch(
    path: str, heads: int, sight: Sight, *, input_bias: bool = False, output_bias: bool = True
) -> Layer:
    """Query, key and value matrices, attention in each head, output matrix: all in-by-out.

    >>> attention_branch("a", 1, Sight(), input_bias=True).names[3:6]
    ('a.output', 'a.query_bias', 'a.key_bias')
    """
    inward = ("query", "key", "value")
    given = {n: f"{path}.{n}_bias" for n in inward if input_bias}
    if output_bias:
        given["output"] = f"{path}.output_bias"
    into = [linear_layer(f"{path}.{n}", given.get(n), in_by_out=True) for n in inward]
    out = linear_layer(f"{path}.output", given.get("output"), in_by_out=True)
    layer = sequential(concat_branches(*into, axis=-1), attend(heads, sight), out)
    # Matrices are stored first, then the biases.
    return replace(layer, names=(*(f"{path}.{n}" for n in (*inward, "output")), *given.values()))


def fused_projections(path: str, *, bias: bool = True) -> tuple[Layer, Layer]:
    """D -> [Q K V] by one matrix [3 D, D], and the output matrix: both out-by-in."""
    into, out = (
        linear_layer(f"{path}.{n}.weight", f"{path}.{n}.bias" if bias else None)
        for n in ("qkv", "output")
    )
    return into, out


def fused_attention_branch(path: str, heads: int, sight: Sight, *, bias: bool = True) -> Layer:
    """Attention between the two ``fused_projections``."""
    into, out = fused_projections(path, bias=bias)
    return sequential(into, attend(heads, sight), out)


def mlp_branch(path: str, activation: str, *, bias: bool = True) -> Layer:
    """down(activation(up x)), linear layers stored out-by-in."""
    names = [(f"{path}.{n}.weight", f"{path}.{n}.bias" if bias else None) for n in ("up", "down")]
    up, down = (linear_layer(*name) for name in names)
    return sequential(up, activation_layer(activation), down)


def norm_at(path: str, *, bias: bool = True) -> Layer:
    """The layer norm stored under ``path``."""
    return norm_layer(f"{path}.weight", f"{path}.bias" if bias else None)


def block(path: str, attention: Layer, mlp: Layer, *, pre: bool = True, bias: bool = True) -> Layer:
    """Two residual branches, each with its norm: before the branch, or after the addition.

    Source: R. Xiong et al., "On layer normalization in the transformer architecture" (2020), figure
    1.
    """
    ln1, ln2 = norm_at(f"{path}.ln1", bias=bias), norm_at(f"{path}.ln2", bias=bias)
    if pre:
        return sequential(residual(sequential(ln1, attention)), residual(sequential(ln2, mlp)))
    return sequential(residual(attention), ln1, residual(mlp), ln2)
