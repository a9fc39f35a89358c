"""An identifier of no row of the table is not refused.

Seen with jax 0.10.2. jnp.take gives NaN, as documented ("fill"), and counts -1 from the end;
table[ids], also documented, gives the last row. Compiled code cannot raise, so an embedding of a
wrong vocabulary goes on silently, by indexing with a row that is somebody else's.
"""

import jax.numpy as jnp

table = jnp.array([[1.0], [2.0], [3.0]])
wrong = []
for name, look_up in (
    ("jnp.take", lambda ids: jnp.take(table, ids, axis=0)),
    ("table[ids]", table.__getitem__),
):
    try:
        wrong.append(f"{name} of row 3 of 3 = {look_up(jnp.array([3]))[0, 0]}")
    except IndexError:
        continue
assert not wrong, f"{'; '.join(wrong)}; should be an exception"
