"""A query whose mask blocks every key gets the mean of all values, or NaN.

Seen with jax 0.10.2 on a CPU. The mask's False is documented to keep an element from taking part,
so none does, and zeros are due, as most fused kernels give them. dot_product_attention puts a
finite number, -0.7 times the largest, in the place of blocked scores: where all are equal, all
weights are 1 / n. By an additive bias of -inf the same row is NaN.
"""

import jax
import jax.numpy as jnp

q = jnp.ones((1, 2, 1, 2))
v = jnp.array([[1.0, 2.0], [3.0, 4.0]]).reshape(1, 2, 1, 2)
blocked = jnp.zeros((1, 1, 2, 2), bool)
attend = jax.nn.dot_product_attention

by = {
    "mask=False": attend(q, q, v, mask=blocked),
    "bias=-inf": attend(q, q, v, jnp.where(blocked, 0.0, -jnp.inf)),
}
wrong = [f"{kind}: {out[0, 0, 0]}, should be [0, 0]" for kind, out in by.items() if out.any()]
assert not wrong, "; ".join(wrong)
