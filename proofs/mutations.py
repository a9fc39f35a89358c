"""One-line mutations of the spec: what could be wrong in it, and the claims that would then be
false.

``sensitivity`` applies each to a copy of the package and asks whether the proofs alone notice.
"""

from __future__ import annotations

from assay.proofs.calculus_mutations import GRIDS, LAYERS
from assay.proofs.mutation import Mutation

TESTS = "a claim about implementations only: properties judge it"

SOFTMAX: tuple[Mutation, ...] = (
    Mutation(
        "softmax.py",
        "top = row_max(scores, allowed)",
        "top = row_max(scores, _everywhere(scores))",
        ("softmax.one_visible", "softmax.blocked_zero"),
    ),
    Mutation(
        "softmax.py",
        "exp(select(allowed, scores, top) - top), 0)",
        "exp(select(allowed, scores, top)), 0)",
        ("softmax.row_sum",),
    ),
    Mutation(
        "softmax.py",
        "exp(select(allowed, scores, top) - top), 0)",
        "exp(select(allowed, scores, top) - top), 1)",
        ("softmax.blocked_zero",),
    ),
    Mutation(
        "softmax.py",
        "exp(select(allowed, scores, top) - top), 0)",
        "exp(scores - top), 0)",
        (),
        "equal: what a blocked score makes of exp is not chosen; only an exception flag would tell",
    ),
    Mutation("softmax.py", "mass, 1)", "mass + 1, 1)", ("softmax.row_sum",)),
    Mutation("softmax.py", "mass, 1)", "mass, 0)", ("attention.empty_row",)),
    Mutation(
        "softmax.py",
        "mass = total(weights)",
        "mass = total(weights * weights)",
        ("softmax.row_sum",),
    ),
    Mutation(
        "softmax.py",
        "weights * (cotangent - total(cotangent * weights))",
        "weights * cotangent - total(cotangent * weights)",
        ("softmax.grad_blocked_zero",),
    ),
    Mutation(
        "softmax.py",
        "weights * (seen - total(seen * weights)), 0)",
        "weights * (seen + total(seen * weights)), 0)",
        ("softmax.vjp_refines", "softmax.grad_sums_zero"),
    ),
    Mutation(
        "softmax.py",
        "weights * (seen - total(seen * weights)), 0)",
        "weights * (seen - total(seen)), 0)",
        ("softmax.vjp_refines", "softmax.grad_sums_zero"),
    ),
    Mutation(
        "softmax.py",
        "return select(allowed, weights * (seen - total(seen * weights)), 0)",
        "return weights * (seen - total(seen * weights))",
        ("softmax.grad_blocked_zero",),
    ),
    Mutation(
        "softmax.py",
        "seen = select(allowed, cotangent, 0)",
        "seen = cotangent",
        ("softmax.grad_blocked_zero", "attention.grad_blocked_zero", "softmax.vjp_refines"),
    ),
    Mutation(
        "softmax.py", "scores, scores - penalty", "scores, -penalty", ("softmax.penalty_leaks",)
    ),
    Mutation("softmax.py", "scores, sentinel", "scores, 0 * sentinel", ("softmax.sentinel",)),
)

MASKS: tuple[Mutation, ...] = (
    Mutation(
        "masks.py",
        "return j <= offset + i",
        "return j < offset + i",
        ("attention.offset",),
    ),
    Mutation("masks.py", "return j <= offset + i", "return j <= i", ("attention.offset",)),
    Mutation("masks.py", "return j <= offset + i", "return j >= i", ("attention.future_zero",)),
    Mutation(
        "masks.py",
        "return offset + i - left <= j",
        "return offset + i - left < j",
        ("attention.offset",),
    ),
    Mutation(
        "masks.py", "<= j, j <= offset + i + right", "<= j, j <= i + right", ("attention.offset",)
    ),
    Mutation(
        "masks.py", "return keys - queries", "return queries - keys", ("attention.alignment",)
    ),
    Mutation("masks.py", "return ~causal_mask", "return causal_mask", ("attention.offset",)),
    Mutation(
        "masks.py",
        "queries + keys + abs(offset) if right",
        "queries if right",
        ("attention.offset",),
    ),
    Mutation(
        "masks.py",
        "result = result & mask",
        "result = result | mask",
        ("attention.future_zero", "cache.left_pad"),
    ),
    Mutation("masks.py", "np.arange(keys) < ", "np.arange(keys) <= ", (), TESTS),
)

ATTENTION: tuple[Mutation, ...] = (
    Mutation("attention.py", "1.0 / math.sqrt(width)", "1.0 / width", ("attention.scale",)),
    Mutation(
        "attention.py",
        "return h // (heads // kv_heads)",
        "return h % kv_heads",
        ("attention.gqa_map",),
    ),
    Mutation(
        "attention.py",
        "-1, -2)) * factor\n    bias",
        "-1, -2))\n    bias",
        ("attention.scale",),
    ),
    Mutation(
        "attention.py",
        "return contract(weights, allowed, expand_kv(v, q.shape[1]))",
        "return contract(weights, np.ones_like(allowed), expand_kv(v, q.shape[1]))",
        ("attention.blocked_independent",),
    ),
    Mutation(
        "attention.py",
        "return contract(weights, allowed, expand_kv(v, q.shape[1]))",
        "return contract(weights * weights, allowed, expand_kv(v, q.shape[1]))",
        ("attention.convex",),
    ),
    Mutation(
        "attention.py",
        "across, cotangent)",
        "across, cotangent) * factor",
        ("attention.value_mass", "attention.vjp_refines"),
    ),
    Mutation(
        "attention.py",
        "expand_kv(k, heads)) * factor",
        "expand_kv(k, heads))",
        ("attention.vjp_refines",),
    ),
    Mutation("attention.py", "across, q) * factor", "across, q)", ("attention.vjp_refines",)),
    Mutation(
        "attention.py",
        "ds = softmax_backward(weights, da, allowed)",
        "ds = weights * da",
        ("attention.vjp_refines",),
    ),
    Mutation("attention.py", ".sum(axis=2)", "[:, :, 0]", ("attention.vjp_refines",)),
    Mutation(
        "attention.py",
        "causal_mask(queries, keys, offset) if causal",
        "causal_mask(queries, keys) if causal",
        ("attention.offset",),
    ),
    Mutation(
        "attention.py",
        "window_mask(queries, keys, offset, *window)",
        "window_mask(queries, keys, 0, *window)",
        ("attention.offset",),
        "the window's own function is proved; that attention hands it the offset is left to "
        "properties",
    ),
    Mutation(
        "attention.py",
        "else scores + bias",
        "else scores - bias",
        (),
        "additive masks: no claim with a proof speaks of them",
    ),
    Mutation("attention.py", "~np.isneginf(mask)", "~np.isposinf(mask)", (), TESTS),
)

ONLINE: tuple[Mutation, ...] = (
    Mutation(
        "online.py", "rescale * state.mass + total", "state.mass + total", ("softmax.online",)
    ),
    Mutation(
        "online.py",
        "acc = rescale * state.acc + added",
        "acc = state.acc + added",
        ("softmax.online", "attention.flash_equals_direct"),
    ),
    Mutation("online.py", "state.seen | some)", "some)", ("softmax.online",)),
    Mutation(
        "online.py",
        "rescale = select(state.seen, exp(select(state.seen, state.top, top) - top), 0)",
        "rescale = select(state.seen, exp(top - select(state.seen, state.top, top)), 0)",
        ("softmax.online",),
    ),
    Mutation(
        "online.py", "left * a.mass + right * b.mass", "left * a.mass + b.mass", ("softmax.online",)
    ),
    Mutation(
        "online.py",
        "left * a.acc + right * b.acc",
        "right * a.acc + left * b.acc",
        ("softmax.online",),
    ),
    Mutation("online.py", "a.seen | b.seen", "a.seen & b.seen", ("softmax.online",)),
    Mutation(
        "online.py",
        "return state.acc / select(state.seen, state.mass, 1)",
        "return state.acc",
        ("softmax.online",),
    ),
    Mutation(
        "online.py",
        "range(0, scores.shape[-1], block)",
        "range(0, scores.shape[-1] - block + 1, block)",
        ("softmax.online", "attention.flash_equals_direct"),
    ),
    Mutation(
        "online.py", "return select(a_seen, both, b_top)", "return both", ("attention.refines",)
    ),
    Mutation("online.py", "if block < 1:", "if block < 0:", (), "no claim speaks of bad arguments"),
)

HELPERS: tuple[Mutation, ...] = (
    Mutation(
        "contraction.py",
        "total_over(select(allowed[..., None], products, 0), x)",
        "total_over(products, x)",
        ("attention.blocked_independent", "attention.grad_blocked_zero"),
    ),
    Mutation(
        "contraction.py",
        "np.where(allowed[..., None], products, 0).sum",
        "products.sum",
        ("embedding.padding_row_zero_grad",),
    ),
    Mutation(
        "contraction.py",
        "np.matmul(np.where(allowed, weights, 0), x)",
        "np.matmul(weights, x)",
        (),
        "equal: weights at blocked places are 0 already, and these are finite",
    ),
    Mutation(
        "scalars.py",
        "(yes if condition else no)",
        "(no if condition else yes)",
        ("softmax.blocked_zero",),
    ),
    Mutation("scalars.py", "bitwise_or.reduce", "bitwise_and.reduce", ("softmax.row_sum",)),
    Mutation(
        "scalars.py",
        "select(_as_object(seen), maximum(top, s), s)",
        "select(_as_object(seen), top, s)",
        ("softmax.row_sum",),
    ),
    Mutation(
        "scalars.py",
        "parts = [x[..., j : j + 1] for j in range(x.shape[-1])]",
        "parts = [x[..., j : j + 1] for j in range(max(1, x.shape[-1] - 1))]",
        ("softmax.row_sum",),
    ),
    Mutation(
        "softmax_bounds.py",
        "exponent = (u + arithmetic.u_mid) * shifted",
        "exponent = 0.0 * shifted",
        ("softmax.refines",),
    ),
    Mutation(
        "softmax_bounds.py",
        "stored = arithmetic.u_store * (weights + error) + arithmetic.tau_store",
        "stored = 0.0 * weights",
        ("softmax.refines",),
        "the simulated kernels store in the format that they calculate in; properties draw others",
    ),
)

SEQUENCES: tuple[Mutation, ...] = (
    Mutation(
        "scans/runner.py",
        "state, y = step(state, x)",
        "_, y = step(state, x)",
        ("scan.history",),
    ),
    Mutation(
        "scans/runner.py",
        "step(first if x[1] else now, x[0])",
        "step(now, x[0])",
        ("scan.packed_reset",),
    ),
    Mutation(
        "scans/runner.py",
        "inputs[start : start + chunk])",
        "inputs[start : start + chunk - (start > 0)])",
        ("scan.chunk_independent",),
    ),
    Mutation(
        "scans/runner.py",
        "[state, *(after for _, after in pairs)]",
        "[*(after for _, after in pairs), state]",
        ("scan.history",),
    ),
    Mutation(
        "scans/runner.py",
        "combine(odd[i // 2 - 1], items[i])",
        "combine(items[i], odd[i // 2 - 1])",
        ("scan.parallel_equals_sequential",),
    ),
    Mutation(
        "scans/algebra.py",
        "AffineMap(later.a * earlier.a, later.a * earlier.b + later.b)",
        "AffineMap(earlier.a * later.a, later.a * earlier.b + later.b)",
        ("scan.compose_associative",),
    ),
    Mutation(
        "scans/algebra.py",
        "IDENTITY = AffineMap(1, 0)",
        "IDENTITY = AffineMap(1, 1)",
        ("scan.compose_identity",),
    ),
    Mutation(
        "scans/affine.py",
        "np.flip(after(a), axis=0)",
        "np.flip(a, axis=0)",
        ("scan.vjp_refines",),
    ),
    Mutation(
        "scans/causal_conv.py",
        "return sum_of(products), extended[:, x.shape[1] :]",
        "return sum_of(products), extended[:, : weight.shape[0] - 1]",
        ("scan.history",),
    ),
    Mutation(
        "scans/selective.py",
        "exponents = np.flip(after(scan.exponents), axis=0)",
        "exponents = np.flip(scan.exponents, axis=0)",
        ("scan.vjp_refines",),
    ),
    Mutation(
        "scans/block.py",
        "causal_conv1d(inner, p.kernel, p.conv_bias, past)",
        "causal_conv1d(inner, p.kernel, p.conv_bias, None)",
        ("scan.history",),
    ),
    Mutation(
        "scans/compact.py",
        "diagonal_core_backward(u, a, b, c, d, h0, dgated * gate, state_cotangent)",
        "diagonal_core_backward(u, a, b, c, d, h0, dgated, state_cotangent)",
        ("scan.vjp_refines",),
    ),
    Mutation(
        "scans/block.py",
        "draw = softplus_backward(done.raw_delta, scan.delta)",
        "draw = softplus_backward(done.delta, scan.delta)",
        ("scan.vjp_refines",),
    ),
    Mutation(
        "recurrent/lstm.py",
        "f, i, o = opened(sums[[0, 1, 3]])",
        "i, f, o = opened(sums[[0, 1, 3]])",
        ("recurrent.gate_order",),
    ),
    Mutation(
        "recurrent/gru.py",
        "return tanh(inputs + r * s)",
        "return tanh(inputs + s)",
        ("recurrent.reset_variant",),
    ),
    Mutation(
        "recurrent/rnn.py",
        "weighted(joined(x, state[0]), self.weight, self.bias)",
        "weighted(joined(state[0], x), self.weight, self.bias)",
        ("recurrent.gate_order",),
    ),
    Mutation(
        "recurrent/rnn.py",
        "dz = d[0] * (1 - after[0] * after[0])",
        "dz = d[0] * (1 - after[0])",
        ("recurrent.vjp_refines",),
    ),
    Mutation(
        "recurrent/lstm.py",
        "d[1] + d[0] * o * (1 - squashed * squashed)",
        "d[1] + d[0] * (1 - squashed * squashed)",
        ("recurrent.vjp_refines",),
    ),
    Mutation(
        "recurrent/gru.py",
        "dz = dh * (h - n) * (z * (1 - z))",
        "dz = dh * (n - h) * (z * (1 - z))",
        ("recurrent.vjp_refines",),
    ),
    Mutation(
        "recurrent/sequence.py",
        "passed = (d[0] + before, *d[1:])",
        "passed = (d[0], *d[1:])",
        ("recurrent.vjp_refines",),
    ),
    Mutation(
        "recurrent/sequence.py",
        "after = tuple(where_active(exists, a, b) for a, b in new)",
        "after = tuple(a for a, b in new)",
        ("recurrent.packed_equals_single",),
    ),
    Mutation(
        "recurrent/lengths.py",
        "np.where(steps < ends, ends - 1 - steps, steps)",
        "np.where(steps < ends, x.shape[1] - 1 - steps, steps)",
        ("recurrent.bidirectional_alignment",),
    ),
    Mutation(
        "cache.py",
        "start = cache.length",
        "start = max(cache.length - 1, 0)",
        ("cache.earlier_slots_kept", "cache.append_last"),
    ),
    Mutation(
        "cache.py",
        "return causal_visible(i, j, offset=length)",
        "return causal_visible(i, j, offset=0 * length)",
        ("cache.decode_equals_full",),
    ),
    Mutation(
        "cache.py",
        "mask=mask, causal=True, offset=cache.length)",
        "mask=mask, causal=True, offset=0)",
        ("cache.chunk_split",),
    ),
    Mutation(
        "cache.py",
        "return last - (last - slot) % window",
        "return last - (slot - last) % window",
        ("cache.rolling_window",),
    ),
    Mutation(
        "cache.py",
        "(stands > query - window)",
        "(stands >= query - window)",
        ("cache.rolling_window",),
    ),
    Mutation(
        "cache.py",
        "if cache.length + tokens > cache.capacity:",
        "if cache.length + tokens >= cache.capacity:",
        ("cache.capacity",),
    ),
    Mutation("cache.py", "v=cache.v[:, rows])", "v=cache.v[:, rows[::-1]])", ("cache.reorder",)),
    Mutation(
        "cache.py",
        "replace(cache, length=0)",
        "replace(cache, length=min(1, cache.length))",
        ("cache.reset",),
    ),
    Mutation(
        "cache.py",
        "causal_mask(tokens, length + tokens, length) & (real | itself)",
        "causal_mask(tokens, length + tokens, length) & real",
        ("cache.left_pad",),
    ),
    Mutation(
        "cache.py",
        "return length + i",
        "return length + i + 1",
        ("cache.position",),
    ),
)

MUTATIONS: tuple[Mutation, ...] = (
    *SOFTMAX, *MASKS, *ATTENTION, *ONLINE, *HELPERS, *SEQUENCES, *LAYERS, *GRIDS,
)  # fmt: skip
