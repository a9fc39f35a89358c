"""jax.nn.standardize of 4095 and 4097 is -316 and 316, by its default algorithm.

Seen with jax 0.10.2 on a CPU. Mean 4096 and variance 1 are exact, so -1 / sqrt(1 + 1e-5) =
-0.999995 is due, and comes by algorithm="stable". The default takes the variance as mean x^2 -
mean^2, which is 0 in float32: "can suffer from catastrophic cancellation", its documentation says.
"""

import jax
import jax.numpy as jnp

out = jax.nn.standardize(jnp.array([4095.0, 4097.0]))
assert abs(out[0] + 0.999995) < 1e-6, f"standardize([4095, 4097]) = {out}, should be -+0.999995"
