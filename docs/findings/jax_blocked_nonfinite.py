"""NaN in a value that the mask blocks reaches the output, as 0 * NaN.

Seen with jax 0.10.2 on a CPU; key_value_seq_lengths, which leaves out padding, lets it through as
well. The mask's False is documented to keep an element from taking part.
"""

import jax
import jax.numpy as jnp

q = jnp.ones((1, 2, 1, 2))
v = jnp.array([[1.0, 2.0], [jnp.nan, jnp.nan]]).reshape(1, 2, 1, 2)
attend = jax.nn.dot_product_attention

by = {
    "mask": attend(q, q, v, mask=jnp.array([[True, False]] * 2)[None, None]),
    "lengths": attend(q, q, v, key_value_seq_lengths=jnp.array([1], jnp.int32)),
}
wrong = [f"{n}: {out[0, 0, 0]}, should be [1, 2]" for n, out in by.items() if jnp.isnan(out).any()]
assert not wrong, "; ".join(wrong)
