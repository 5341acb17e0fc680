"""The Recurrent Transformer against the paper's counts and a deliberately naive implementation."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from mull.errors import InvalidInput
from mull.models.embed import ImageEmbedder, convolve_and_pool, make_embedder
from mull.models.recurrent_transformer import ModelConfig, RecurrentTransformer
from mull.problem import Hints, Images
from mull.problems.sudoku import Sudoku

PAPER = ModelConfig()
OPTIONS = [
    PAPER,
    replace(PAPER, blocks=2, heads=2, width=32),
    replace(PAPER, feedback=True, inject=True),
    replace(PAPER, blocks=2, width=32, feedback=True, inject=True, positions=False),
]


def build(config: ModelConfig, box: int = 2) -> RecurrentTransformer:
    """A float64 model whose weights are far from their initial values, so that every term matters."""
    torch.manual_seed(0)
    model = RecurrentTransformer(Sudoku(box), config).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model


def naive(model: RecurrentTransformer, tokens: list[int], steps: int) -> np.ndarray:
    """The appendix's equations for one instance with loops over tokens and heads; logits (S, L, V, D)."""
    weights = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
    config = model.config

    def norm(vector: np.ndarray, name: str) -> np.ndarray:
        centred = vector - vector.sum() / len(vector)
        deviation = math.sqrt((centred**2).sum() / len(vector) + 1e-5)
        return centred / deviation * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    def linear(vector: np.ndarray, name: str) -> np.ndarray:
        return weights[f"{name}.weight"] @ vector + weights.get(f"{name}.bias", 0.0)

    def softmax(scores: np.ndarray) -> np.ndarray:
        powers = np.array([math.exp(score - scores.max()) for score in scores])
        return powers / powers.sum()

    embedded = [weights["embed.weight"][token].copy() for token in tokens]
    if config.positions:
        embedded = [vector + weights["positions"][place] for place, vector in enumerate(embedded)]
    hidden, size, outputs = list(embedded), config.width // config.heads, []
    for _ in range(steps):
        row = []
        for block in range(config.blocks):
            at = f"blocks.{block}"
            read = [norm(h, f"{at}.norm_attention") for h in hidden]
            if config.inject:
                read = [r + norm(e, "norm_context") for r, e in zip(read, embedded, strict=True)]
            q, k, v = zip(*(np.split(linear(r, f"{at}.qkv"), 3) for r in read), strict=True)
            after = []
            for i in range(len(tokens)):
                mixed = []
                for head in range(config.heads):
                    part = slice(head * size, (head + 1) * size)
                    scores = np.array([q[i][part] @ k[j][part] / math.sqrt(size) for j in range(len(tokens))])
                    attention = softmax(scores)
                    mixed.append(sum(attention[j] * v[j][part] for j in range(len(tokens))))
                star = hidden[i] + linear(np.concatenate(mixed), f"{at}.project")
                inner = linear(norm(star, f"{at}.norm_mlp"), f"{at}.expand")
                gelu = np.array([x * 0.5 * (1 + math.erf(x / math.sqrt(2))) for x in inner])
                after.append(star + linear(gelu, f"{at}.contract"))
            hidden = after
            row.append([linear(norm(h, "norm_out"), "output") for h in hidden])
        if config.feedback:
            hidden = [h + linear(softmax(x), "feedback") for h, x in zip(hidden, row[-1], strict=True)]
        outputs.append(row)
    return np.array(outputs)


@pytest.mark.parametrize("config", OPTIONS)
def test_matches_the_naive_implementation(config: ModelConfig) -> None:
    model = build(config)
    tokens = torch.randint(0, 5, (2, 16))
    with torch.no_grad():
        logits = model(tokens, 3).logits_SLBVD.numpy()
    for row in range(2):
        np.testing.assert_allclose(logits[:, :, row], naive(model, tokens[row].tolist(), 3), atol=1e-5)


def test_counts_of_the_paper() -> None:
    def count(config: ModelConfig) -> int:
        return sum(p.numel() for p in RecurrentTransformer(Sudoku(), config).parameters())

    assert count(PAPER) == 211_328
    assert count(replace(PAPER, feedback=True, inject=True)) == 212_736


def test_visual_model_has_the_papers_size() -> None:
    embedder = make_embedder(Images(28, 28), 128)
    assert embedder(torch.zeros(2, 81, 28, 28)).shape == (2, 81, 128)
    visual = sum(p.numel() for p in embedder.parameters()) + 211_328 - 1_280
    assert visual == 700_246  # the paper's 702k (701,526) counts a token table of 10 x 128 that images do not use


@pytest.mark.parametrize("pools", [1, 2])
def test_convolution_and_pool_in_one(pools: int) -> None:
    torch.manual_seed(0)
    layer, images = nn.Conv2d(3, 7, 5).double(), torch.randn(4, 3, 20, 16, dtype=torch.float64)
    plain = F.max_pool2d(F.relu(layer(images)), 2)
    ours = convolve_and_pool(images, layer, pools)
    torch.testing.assert_close(ours, plain)
    towards = torch.randn_like(plain)
    gradients = [torch.autograd.grad((out * towards).sum(), list(layer.parameters())) for out in (plain, ours)]
    torch.testing.assert_close(gradients[1], gradients[0])


def test_images_are_embedded_at_the_asked_size() -> None:
    torch.manual_seed(0)
    embedder = make_embedder(Images(28, 28, 0.5, 0.29), 64)
    assert isinstance(embedder, ImageEmbedder)
    embedder.initialise(0.5)
    vectors = embedder(torch.randint(0, 256, (2, 81, 28, 28), dtype=torch.uint8))
    assert 0.25 < vectors.std(dim=-1).mean() < 2.0  # pooling adds to it


def test_vectors_of_images_can_begin_alike_in_mean_and_deviation() -> None:
    torch.manual_seed(0)
    embedder = make_embedder(Images(28, 28, 0.5, 0.29), 64)
    assert isinstance(embedder, ImageEmbedder)
    embedder.initialise(0.5)
    images = torch.randint(0, 256, (3, 81, 28, 28), dtype=torch.uint8)
    embedder.standardise(images, 0.7)
    vectors = embedder(images).flatten(0, 1)
    torch.testing.assert_close(vectors.mean(0), torch.zeros(64), atol=1e-4, rtol=0)
    torch.testing.assert_close(vectors.std(0), torch.full((64,), 0.7), atol=1e-3, rtol=0)


def test_dropout_of_images_is_for_training_alone() -> None:
    torch.manual_seed(0)
    embedder = make_embedder(Images(28, 28), 8, image_dropout=0.5)
    images = torch.randint(0, 256, (1, 4, 28, 28), dtype=torch.uint8)
    assert not torch.equal(embedder(images), embedder(images))
    embedder.eval()
    assert torch.equal(embedder(images), embedder(images))
    with pytest.raises(InvalidInput, match="image_dropout"):
        ModelConfig(image_dropout=1)


def test_hints_are_embedded_by_place_and_number() -> None:
    embedder = make_embedder(Hints(6, 9), 16)
    hints = torch.randint(0, 10, (2, 49, 6), dtype=torch.uint8)
    assert isinstance(embedder, nn.Embedding)
    expected = embedder.weight[hints.long() + 10 * torch.arange(6)].sum(-2)
    torch.testing.assert_close(embedder(hints), expected)


def test_attention_rows_are_distributions_and_do_not_change_the_logits() -> None:
    model = build(OPTIONS[3])
    tokens = torch.randint(0, 5, (2, 16))
    plain, shown = model(tokens, 2), model(tokens, 2, attention=True)
    assert shown.attention_SLBNVV is not None and shown.attention_SLBNVV.shape == (2, 2, 2, 4, 16, 16)
    torch.testing.assert_close(shown.attention_SLBNVV.sum(-1), torch.ones(2, 2, 2, 4, 16, dtype=torch.float64))
    torch.testing.assert_close(plain.logits_SLBVD, shown.logits_SLBVD)


def test_watched_attention_is_the_sum_of_the_maps_and_has_gradients() -> None:
    model = build(OPTIONS[3])
    tokens, watch = torch.randint(0, 5, (2, 16)), (torch.rand(16, 16) < 0.4).double()
    shown, watched = model(tokens, 2, attention=True), model(tokens, 2, watch_VV=watch)
    assert shown.attention_SLBNVV is not None and watched.watched_SLBNV is not None
    assert watched.attention_SLBNVV is None and shown.watched_SLBNV is None
    torch.testing.assert_close(watched.watched_SLBNV, (shown.attention_SLBNVV * watch).sum(-1))
    torch.testing.assert_close(watched.logits_SLBVD, shown.logits_SLBVD)
    watched.watched_SLBNV.sum().backward()
    for block in model.blocks:
        assert block.qkv.weight.grad is not None and block.qkv.weight.grad[: 2 * 32].abs().sum() > 0


def test_training_with_attention_learns_the_same() -> None:
    """Explicit attention has the gradients of the fused one, and drops out what it uses, not what it shows."""
    grads = []
    for watch in (None, torch.ones(16, 16, dtype=torch.float64)):
        model = build(replace(OPTIONS[2], dropout=0.0)).train()
        tokens = torch.randint(0, 5, (2, 16), generator=torch.Generator().manual_seed(1))
        model(tokens, 3, watch_VV=watch).logits_SLBVD.square().sum().backward()
        grads.append([parameter.grad for parameter in model.parameters()])
    torch.testing.assert_close(grads[0], grads[1])
    shown = build(replace(PAPER, dropout=0.5)).train()(tokens, 2, watch_VV=watch)
    torch.testing.assert_close(shown.watched_SLBNV, torch.ones_like(shown.watched_SLBNV))


def test_resuming_from_a_state_continues_the_recurrence() -> None:
    model = build(OPTIONS[2])
    tokens = torch.randint(0, 5, (3, 16))
    whole, first = model(tokens, 6), model(tokens, 4)
    fresh = torch.tensor([False, True, False])
    rest = model(tokens, 2, resume=(first.state_BVH, fresh))
    torch.testing.assert_close(rest.logits_SLBVD[:, :, [0, 2]], whole.logits_SLBVD[4:, :, [0, 2]])
    torch.testing.assert_close(rest.logits_SLBVD[:, :, 1], whole.logits_SLBVD[:2, :, 1])


def test_dropout_acts_in_training_only() -> None:
    model = build(PAPER)
    tokens = torch.randint(0, 5, (1, 16))
    torch.testing.assert_close(model(tokens, 1).logits_SLBVD, model(tokens, 1).logits_SLBVD)
    model.train()
    assert not torch.allclose(model(tokens, 1).logits_SLBVD, model(tokens, 1).logits_SLBVD)


def test_bfloat16_on_a_cpu_is_close_and_trains() -> None:
    torch.manual_seed(0)
    model = RecurrentTransformer(Sudoku(2), ModelConfig(width=32, dropout=0.0, feedback=True, inject=True))
    inputs = torch.randint(0, 5, (4, 16))
    exact = model(inputs, 4).logits_SLBVD
    with torch.autocast("cpu", torch.bfloat16):
        rounded = model(inputs, 4).logits_SLBVD
    assert rounded.dtype == torch.bfloat16
    torch.testing.assert_close(rounded.float(), exact, atol=0.02, rtol=0.05)
    rounded.float().square().mean().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())
