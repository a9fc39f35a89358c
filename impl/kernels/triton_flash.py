"""Flash attention in Triton, forward and backward: tiles of queries and keys, scores never stored.

Keys are passed over with a running maximum m, mass l and sum o (T. Dao, "FlashAttention-2", 2023);
the backward pass computes the weights again from the logarithm of the mass. Blocked pairs count for
nothing, also when a key, value or cotangent there is not finite: a program whose result is not
finite leaves a mark, and a second launch, in which all others end at once, computes it again with
care. So the first has no cost of it, and the host waits for nothing.
"""

from __future__ import annotations

import triton.language as tl
from triton.language import tensor

from assay.impl.kernels.triton_kernel import kernel, larger, row_most, row_total


@kernel
def _load(x: tensor, columns: tensor, row: tensor, stride: tensor, rows: tensor) -> tensor:
    """A tile of an array, 0 beyond its ends; its columns are in ``x`` and ``columns`` already.

    With rows along the second axis and columns along the first the tile comes transposed.
    """
    return tl.load(x + row * stride, (row < rows) & columns, other=0.0)


@kernel
def _seen(
    query: tensor, key: tensor, queries: tensor, keys: tensor, offset: tensor, left: tensor,
    right: tensor,
    LIMITED: tl.constexpr,
) -> tensor:  # fmt: skip
    """Which pairs of query and key are in the arrays and, where LIMITED, within the limits."""
    seen = (query < queries) & (key < keys)
    if LIMITED:
        ahead = key - (query + offset)
        seen = seen & (ahead >= -left) & (ahead <= right)
    return seen


@kernel
def _masked(
    s: tensor, seen: tensor, mask: tensor, query: tensor, key: tensor, row_stride: tensor,
    column_stride: tensor,
    MASK: tl.constexpr,
) -> tensor:  # fmt: skip
    """Scores with an additive mask added (MASK = 2), and the pairs that the mask leaves: all but
    those where it is False (1) or -inf (2).
    """
    if MASK == 1:
        at = mask + query * row_stride + key * column_stride
        seen = seen & (tl.load(at, seen, other=0) != 0)
    if MASK == 2:
        at = mask + query * row_stride + key * column_stride
        bias = tl.load(at, seen, other=0.0).to(tl.float32)
        seen = seen & (bias != float("-inf"))
        s = s + bias
    return s, seen


@kernel
def contract(
    weights: tensor, seen: tensor, x: tensor,
    PRECISION: tl.constexpr, CAREFUL: tl.constexpr,
) -> tensor:  # fmt: skip
    """sum over j of weights[i, j] x[j]; CAREFUL: what is not seen has no influence, NaN included.

    That takes two more products: how many numbers that are not finite each result meets, a NaN
    counting more than a tile has keys, and how many infinities with their signs. Infinities of one
    sign, each with a weight that is not 0, give that infinity; anything else NaN.
    """
    if CAREFUL:
        finite = (x - x) == 0.0
        clean = tl.where(finite, x, 0.0).to(x.dtype)
        total = tl.dot(weights.to(x.dtype), clean, input_precision=PRECISION)
        unknown = x != x
        count = tl.where(unknown, 1024.0, tl.where(finite, 0.0, 1.0)).to(x.dtype)
        met = tl.dot(tl.where(seen, 1.0, 0.0).to(x.dtype), count, input_precision=PRECISION)
        side = tl.where(weights > 0, 1.0, tl.where(weights < 0, -1.0, 0.0)).to(x.dtype)
        sign = tl.where(finite | unknown, 0.0, tl.where(x > 0, 1.0, -1.0)).to(x.dtype)
        way = tl.dot(side, sign, input_precision=PRECISION)
        endless = tl.where(tl.abs(way) == met, way * float("inf"), float("nan"))
        total = tl.where(met > 0, total + endless, total)
    else:
        total = tl.dot(weights.to(x.dtype), x, input_precision=PRECISION)
    return total


@kernel
def _endless(x: tensor) -> tensor:
    """1 where a tile holds NaN or an infinity, else 0."""
    return tl.reduce(tl.where((x - x) == 0.0, 0, 1), None, larger)


@kernel
def flash_forward(
    marks: tensor, q: tensor, k: tensor, v: tensor, mask: tensor, out: tensor, logarithm: tensor,
    qb: tensor, qh: tensor, qn: tensor, qd: tensor, kb: tensor, kh: tensor, kn: tensor, kd: tensor,
    vb: tensor, vh: tensor, vn: tensor, vd: tensor, mb: tensor, mh: tensor, mn: tensor, mk: tensor,
    heads: tensor, group: tensor, queries: tensor, keys: tensor, width: tensor,
    value_width: tensor, offset: tensor, left: tensor, right: tensor, scale: tensor,
    MASK: tl.constexpr, LIMITED: tl.constexpr, PRECISION: tl.constexpr, QUERIES: tl.constexpr,
    KEYS: tl.constexpr, WIDTH: tl.constexpr, VALUES: tl.constexpr, CAREFUL: tl.constexpr,
) -> None:  # fmt: skip
    """Output of QUERIES queries of one head, and the logarithms of their masses."""
    marks += tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    if CAREFUL:  # noqa: SIM102 - decided by the compiler, unlike the next one
        if tl.load(marks) == 0:
            return
    line = tl.program_id(1).to(tl.int64)
    batch, head = line // heads, line % heads
    first = tl.program_id(0) * QUERIES
    row = first + tl.arange(0, QUERIES).to(tl.int64)
    lane = tl.arange(0, KEYS).to(tl.int64)
    d, e = tl.arange(0, WIDTH), tl.arange(0, VALUES)
    q += batch * qb + head * qh + d[None, :] * qd
    k += batch * kb + (head // group) * kh + d[:, None] * kd
    v += batch * vb + (head // group) * vh + e[None, :] * vd
    mask += batch * mb + head * mh
    real, whole = (d < width)[:, None], (e < value_width)[None, :]
    query = _load(q, (d < width)[None, :], row[:, None], qn, queries)
    top = tl.full((QUERIES,), float("-inf"), tl.float32)
    mass = tl.full((QUERIES,), 0.0, tl.float32)
    total = tl.full((QUERIES, VALUES), 0.0, tl.float32)
    # Only tiles in which the rules leave a pair.
    begin = tl.maximum(first + offset - left, 0) // KEYS * KEYS
    end = tl.minimum(first + QUERIES + offset + right, keys)
    for start in range(begin, end, KEYS):
        down, across = (start + lane)[:, None], (start + lane)[None, :]
        key = _load(k, real, across, kn, keys)
        s = tl.dot(query, key, input_precision=PRECISION) * scale
        seen = _seen(row[:, None], across, queries, keys, offset, left, right, LIMITED)
        s, seen = _masked(s, seen, mask, row[:, None], across, mn, mk, MASK)
        # NaN is left out of the maximum, and reaches the mass.
        higher = tl.maximum(top, row_most(tl.where(seen & (s == s), s, float("-inf")), 1))
        # Nothing is seen yet where the maximum is still -inf: shifting by it would give NaN.
        shift = tl.where(higher == float("-inf"), 0.0, higher)
        p = tl.where(seen, tl.exp(tl.where(seen, s, shift[:, None]) - shift[:, None]), 0.0)
        kept = tl.exp(top - shift)
        mass = mass * kept + row_total(p, 1)
        value = _load(v, whole, down, vn, keys)
        total = total * kept[:, None] + contract(p, seen, value, PRECISION, CAREFUL)
        top = higher
    # A row that has seen nothing is 0; one whose scores are all -inf is 0/0.
    empty = (top == float("-inf")) & (mass == 0.0)
    total = total / tl.where(empty, 1.0, mass)[:, None]
    here, present = line * queries + row, row < queries
    at = here[:, None] * value_width + e[None, :]
    tl.store(out + at, total.to(out.dtype.element_ty), present[:, None] & whole)
    tl.store(logarithm + here, tl.where(empty, 0.0, top + tl.log(mass)), present)
    if not CAREFUL:
        tl.store(marks, _endless(total))


@kernel
def _weights(
    s: tensor, seen: tensor, logarithm: tensor,
) -> tensor:  # fmt: skip
    """exp(s - log mass) where seen, else 0."""
    return tl.where(seen, tl.exp(tl.where(seen, s - logarithm, 0.0)), 0.0)


@kernel
def flash_backward_queries(
    marks: tensor, q: tensor, k: tensor, v: tensor, mask: tensor, cotangent: tensor,
    logarithm: tensor, mean: tensor, dq: tensor, qb: tensor, qh: tensor, qn: tensor, qd: tensor,
    kb: tensor, kh: tensor, kn: tensor, kd: tensor, vb: tensor, vh: tensor, vn: tensor, vd: tensor,
    mb: tensor, mh: tensor, mn: tensor, mk: tensor, heads: tensor, group: tensor, queries: tensor,
    keys: tensor, width: tensor, value_width: tensor, offset: tensor, left: tensor, right: tensor,
    scale: tensor,
    MASK: tl.constexpr, LIMITED: tl.constexpr, PRECISION: tl.constexpr, QUERIES: tl.constexpr,
    KEYS: tl.constexpr, WIDTH: tl.constexpr, VALUES: tl.constexpr, CAREFUL: tl.constexpr,
) -> None:  # fmt: skip
    """dQ = scale dS K of QUERIES queries of one head; dS = A (dO V^T - mean)."""
    marks += tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    if CAREFUL:  # noqa: SIM102 - decided by the compiler, unlike the next one
        if tl.load(marks) == 0:
            return
    line = tl.program_id(1).to(tl.int64)
    batch, head = line // heads, line % heads
    first = tl.program_id(0) * QUERIES
    row = first + tl.arange(0, QUERIES).to(tl.int64)
    lane = tl.arange(0, KEYS).to(tl.int64)
    d, e = tl.arange(0, WIDTH), tl.arange(0, VALUES)
    q += batch * qb + head * qh + d[None, :] * qd
    cotangent += line * queries * value_width + e[None, :]
    query = _load(q, (d < width)[None, :], row[:, None], qn, queries)
    g = _load(cotangent, (e < value_width)[None, :], row[:, None], value_width, queries)
    here, present = line * queries + row, row < queries
    shift = tl.load(logarithm + here, present, other=0.0)[:, None]
    middle = tl.load(mean + here, present, other=0.0)[:, None]
    k += batch * kb + (head // group) * kh + d[:, None] * kd
    v += batch * vb + (head // group) * vh + e[:, None] * vd
    mask += batch * mb + head * mh
    total = tl.full((QUERIES, WIDTH), 0.0, tl.float32)
    begin = tl.maximum(first + offset - left, 0) // KEYS * KEYS
    end = tl.minimum(first + QUERIES + offset + right, keys)
    for start in range(begin, end, KEYS):
        across = (start + lane)[None, :]
        key = _load(k, (d < width)[:, None], across, kn, keys)
        s = tl.dot(query, key, input_precision=PRECISION) * scale
        seen = _seen(row[:, None], across, queries, keys, offset, left, right, LIMITED)
        s, seen = _masked(s, seen, mask, row[:, None], across, mn, mk, MASK)
        p = _weights(s, seen, shift)
        value = _load(v, (e < value_width)[:, None], across, vn, keys)
        slope = tl.dot(g, value, input_precision=PRECISION)
        ds = tl.where(seen, p * (slope - middle), 0.0)
        total += contract(ds, seen, tl.trans(key), PRECISION, CAREFUL)
    at = here[:, None] * width + d[None, :]
    tl.store(
        dq + at, (total * scale).to(dq.dtype.element_ty), present[:, None] & (d < width)[None, :]
    )


@kernel
def flash_backward_keys(
    marks: tensor, q: tensor, k: tensor, v: tensor, mask: tensor, cotangent: tensor,
    logarithm: tensor, mean: tensor, dk: tensor, dv: tensor, qb: tensor, qh: tensor, qn: tensor,
    qd: tensor, kb: tensor, kh: tensor, kn: tensor, kd: tensor, vb: tensor, vh: tensor, vn: tensor,
    vd: tensor, mb: tensor, mh: tensor, mn: tensor, mk: tensor, heads: tensor, group: tensor,
    queries: tensor, keys: tensor, width: tensor, value_width: tensor, offset: tensor,
    left: tensor, right: tensor, scale: tensor,
    MASK: tl.constexpr, LIMITED: tl.constexpr, PRECISION: tl.constexpr, QUERIES: tl.constexpr,
    KEYS: tl.constexpr, WIDTH: tl.constexpr, VALUES: tl.constexpr, CAREFUL: tl.constexpr,
) -> None:  # fmt: skip
    """dK = scale dS^T Q and dV = A^T dO of KEYS keys of one key head, over the query heads that
    share it; scores are transposed, [KEYS, QUERIES].
    """
    marks += tl.program_id(1) * tl.num_programs(0) + tl.program_id(0)
    if CAREFUL:  # noqa: SIM102 - decided by the compiler, unlike the next one
        if tl.load(marks) == 0:
            return
    kv_heads = heads // group
    line = tl.program_id(1).to(tl.int64)
    batch, kv_head = line // kv_heads, line % kv_heads
    first = tl.program_id(0) * KEYS
    place = first + tl.arange(0, KEYS).to(tl.int64)
    lane = tl.arange(0, QUERIES).to(tl.int64)
    d, e = tl.arange(0, WIDTH), tl.arange(0, VALUES)
    real, whole = (d < width)[None, :], (e < value_width)[None, :]
    k += batch * kb + kv_head * kh + d[None, :] * kd
    v += batch * vb + kv_head * vh + e[None, :] * vd
    key = _load(k, real, place[:, None], kn, keys)
    value = _load(v, whole, place[:, None], vn, keys)
    into_k = tl.full((KEYS, WIDTH), 0.0, tl.float32)
    into_v = tl.full((KEYS, VALUES), 0.0, tl.float32)
    begin = tl.maximum(first - offset - right, 0) // QUERIES * QUERIES
    end = tl.minimum(first + KEYS - offset + left, queries)
    for member in range(0, group):
        head = kv_head * group + member
        rows = (batch * heads + head) * queries
        here, sight = q + batch * qb + head * qh, mask + batch * mb + head * mh
        given = cotangent + rows * value_width
        for start in range(begin, end, QUERIES):
            row = start + lane
            down, across = row[:, None], row[None, :]
            query = _load(here + d[:, None] * qd, (d < width)[:, None], across, qn, queries)
            s = tl.dot(key, query, input_precision=PRECISION) * scale
            seen = _seen(across, place[:, None], queries, keys, offset, left, right, LIMITED)
            s, seen = _masked(s, seen, sight, across, place[:, None], mn, mk, MASK)
            shift = tl.load(logarithm + rows + row, row < queries, other=0.0)[None, :]
            p = _weights(s, seen, shift)
            g = _load(given + e[None, :], whole, down, value_width, queries)
            into_v += contract(p, seen, g, PRECISION, CAREFUL)
            slope = tl.dot(value, tl.trans(g), input_precision=PRECISION)
            middle = tl.load(mean + rows + row, row < queries, other=0.0)[None, :]
            ds = tl.where(seen, p * (slope - middle), 0.0)
            into_k += contract(ds, seen, tl.trans(query), PRECISION, CAREFUL)
    at, there = (line * keys + place)[:, None], (place < keys)[:, None]
    spread = (into_k * scale).to(dk.dtype.element_ty)
    tl.store(dk + at * width + d[None, :], spread, there & real)
    tl.store(dv + at * value_width + e[None, :], into_v.to(dv.dtype.element_ty), there & whole)
    if not CAREFUL:
        tl.store(marks, tl.maximum(_endless(into_k), _endless(into_v)))
