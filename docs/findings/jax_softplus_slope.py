"""The slope of softplus is off by up to 9 units in the last place of float32, 17 of float64.

Seen with jax 0.10.2 on a CPU. logaddexp(x, 0) is differentiated as exp(x - y), with the y that was
already rounded: its error of u |y| becomes one of the exponential. 1 / (1 + exp(-x)), the same
slope, is good to 3.
"""

import math

import jax

jax.config.update("jax_enable_x64", True)
x = 23.0
got = float(jax.grad(jax.nn.softplus)(x))
due = 1.0 / (1.0 + math.exp(-x))
# exp(-x) = 1.03e-10 is half a million times what 1 - slope has for a rounding error.
assert abs(got - due) <= 2 * math.ulp(1.0), f"slope of softplus(23) = {got!r}, should be {due!r}"
