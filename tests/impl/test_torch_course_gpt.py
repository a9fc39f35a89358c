"""The figures of the course GPT, measured on its torch module at full size."""

from __future__ import annotations

import math
from collections import Counter

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import cross_entropy
from torch.utils.flop_counter import FlopCounterMode

from assay.impl.backends import torch_models_transformer
from assay.impl.backends.torch_first import initialise
from assay.impl.backends.torch_held import hold
from assay.impl.backends.torch_models_cache import GrowingCache, StaticCache
from assay.impl.backends.torch_models_transformer import GPT
from assay.spec.models.costs import training_flops
from assay.spec.models.gpt import GPTConfig, steps
from assay.spec.models.initial_loss import interval

MATRICES = 851_968
"""Weights that multiply something: the head is the token table, and counts; positions do not."""


def course(seed: int = 0, *, explicit: bool = False) -> GPT:
    held = hold("gpt", "{}", torch.empty(0), explicit=explicit)
    initialise(held.module, seed)
    assert isinstance(held.module, GPT)
    return held.module


def tokens(rows: int, length: int, seed: int = 1) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(512, (rows, length), generator=generator)


def test_counts_of_the_built_model() -> None:
    model = course()
    sizes = Counter({n: p.numel() for n, p in model.named_parameters()})
    parts = ("ln_1", "attn.c_attn", "attn.c_proj", "ln_2", "mlp.c_fc", "mlp.c_proj")
    block = [sum(c for n, c in sizes.items() if n.startswith(f"h.0.{part}.")) for part in parts]

    assert block == [256, 49_536, 16_512, 256, 66_048, 65_664]
    assert sum(block) == 198_272
    assert sizes.total() == 875_264
    assert sizes.total() - sizes["wpe.weight"] == 858_880
    matrices = sum(p.numel() for n, p in model.named_parameters() if p.ndim == 2)
    assert matrices - sizes["wpe.weight"] == MATRICES
    assert model.lm_head.weight is model.wte.weight


def test_both_attentions_agree_and_no_later_token_matters() -> None:
    fused, explicit = course(), course(explicit=True)
    ids = tokens(2, 64)
    other = ids.clone()
    other[:, 40:] = (other[:, 40:] + 1) % 512
    with torch.no_grad():
        logits = fused(ids)
        assert (logits - explicit(ids)).abs().max() < 1e-5
        assert (logits - fused(other))[:, :40].abs().max() < 1e-5
        assert (logits - fused(other))[:, 40:].abs().max() > 0.1


def test_a_reshape_without_a_transpose_lets_the_future_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It runs silently, and a later token moves earlier logits by some hundredths."""
    monkeypatch.setattr(
        torch_models_transformer,
        "into_heads",
        lambda x, heads: x.reshape(len(x), heads, x.shape[1], -1),
    )
    model, ids = course(), tokens(2, 64)
    other = ids.clone()
    other[:, 40:] = (other[:, 40:] + 1) % 512
    with torch.no_grad():
        moved = (model(ids) - model(other))[:, :40].abs().max()
    assert 0.01 < moved < 1.0


def test_first_losses() -> None:
    """ln 512 + s²/2 = 6.264 with s = 0.02 sqrt(128); less where the targets are the inputs, whose
    own row of the table is in the stream; 86 and so on for a table that starts at N(0, 1).
    """
    ids = tokens(8, 64)
    targets = tokens(8, 64, seed=2)
    expected = math.log(512) + 0.02**2 * 128 / 2
    low, high = interval("gpt", GPTConfig())

    def loss(model: GPT, wanted: torch.Tensor) -> float:
        with torch.no_grad():
            return float(cross_entropy(model(ids).flatten(0, 1), wanted.flatten()))

    first = [loss(course(seed), targets) for seed in range(3)]
    assert first == pytest.approx([expected] * 3, abs=0.05)
    assert all(low < each < high for each in first)
    assert loss(course(), ids) < 5.6
    model = course()
    torch.nn.init.normal_(model.wte.weight, generator=torch.Generator().manual_seed(0))
    assert loss(model, targets) > 60


def test_the_deviations_of_the_first_values() -> None:
    for name, p in course().named_parameters():
        if p.ndim == 2:
            due = 0.02 / math.sqrt(8) if name.endswith("c_proj.weight") else 0.02
            assert float(p.detach().std()) == pytest.approx(due, rel=0.03)
        elif name.endswith("bias"):
            assert not p.any()
        else:
            assert p.eq(1.0).all()


def test_operations_of_a_training_step() -> None:
    """6 N + 12 L T D a token, of which the products with weights are the first part exactly."""
    ids = tokens(4, 64)
    whole = training_flops(steps(GPTConfig(), 4, 64))

    def counted(model: GPT) -> tuple[int, int]:
        with FlopCounterMode(display=False) as counter:
            model(ids).sum().backward()
        by_op = counter.get_flop_counts()["Global"]
        products = sum(by_op.get(op, 0) for op in (torch.ops.aten.mm, torch.ops.aten.addmm))
        return counter.get_total_flops(), products

    assert whole == 1_409_286_144
    assert counted(course(explicit=True)) == (whole, 6 * MATRICES * 256)
    with sdpa_kernel(SDPBackend.MATH):
        assert counted(course()) == (whole, 6 * MATRICES * 256)
    assert whole - 12 * 4 * 64 * 128 * 256 == 1_308_622_848 == 6 * MATRICES * 256


def test_a_cache_of_the_whole_context_and_its_logits() -> None:
    model = course()
    ids = tokens(1, 13)
    slots = StaticCache(1, (), (4, 4, 128, 32), torch.empty(0))
    assert slots.k.nbytes + slots.v.nbytes == 524_288
    with torch.no_grad():
        whole = model(ids)
        for cache in (slots, GrowingCache(1)):
            chunks = [model(part, cache) for part in (ids[:, :12], ids[:, 12:])]
            assert (torch.cat(chunks, dim=1) - whole).abs().max() < 1e-5
            assert cache.length == 13


def test_padding_on_the_left_changes_no_logits() -> None:
    model = course()
    ids = tokens(1, 9)
    padded = torch.cat([torch.zeros(1, 4, dtype=torch.int64), ids], dim=1)
    with torch.no_grad():
        found = model(padded, GrowingCache(1, (4,)))[:, 4:]
        assert (found - model(ids)).abs().max() < 1e-5


def test_a_batch_is_learnt_by_heart_in_forty_steps() -> None:
    model, ids, targets = course(), tokens(4, 64), tokens(4, 64, seed=2)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
    losses = []
    for _ in range(40):
        optimizer.zero_grad()
        loss = cross_entropy(model(ids).flatten(0, 1), targets.flatten())
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))

    assert losses[0] == pytest.approx(math.log(512), abs=0.1)
    assert losses[-1] < 0.5
