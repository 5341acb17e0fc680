"""Token embedders: from a variable's input to a vector, one for each input kind."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mull.problem import Hints, Images, InputKind, Tokens


class TokenEmbedder(nn.Embedding):
    """A vector for each symbol: (B, V) -> (B, V, H)."""

    def forward(self, input: Tensor) -> Tensor:
        """Embed symbols of any integer type."""
        return F.embedding(input.long(), self.weight)


class HintEmbedder(nn.Embedding):
    """A vector for each number at each place, summed over the places: (B, V, width) -> (B, V, H)."""

    def __init__(self, kind: Hints, width: int) -> None:
        super().__init__(kind.width * (kind.largest + 1), width)
        self.kind = kind

    def forward(self, input: Tensor) -> Tensor:
        """Embed numbers of any integer type; as a product, since looking up and adding takes far more memory."""
        ones = F.one_hot(input.long(), self.kind.largest + 1).flatten(-2)
        return ones.to(self.weight.dtype) @ self.weight


class ImageEmbedder(nn.Module):
    """The LeNet-like network of the paper, shared by all variables: (B, V, height, width) -> (B, V, H).

    Two layers of 5x5 convolution, rectifier and 2x2 pooling, then 500 hidden units.
    """

    def __init__(self, kind: Images, width: int) -> None:
        super().__init__()
        rows, columns = (((side - 4) // 2 - 4) // 2 for side in kind.shape)
        self.kind = kind
        self.first, self.second = nn.Conv2d(1, 20, 5), nn.Conv2d(20, 50, 5)
        self.hidden, self.last = nn.Linear(50 * rows * columns, 500), nn.Linear(500, width)

    def initialise(self, std: float) -> None:
        """Weights that keep the size of what passes through them, and vectors of about the given deviation."""
        for layer in (self.first, self.second, self.hidden):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        nn.init.normal_(self.last.weight, std=std / math.sqrt(self.last.in_features))

    def forward(self, images: Tensor) -> Tensor:
        """Embed every image."""
        pixels = (images.flatten(0, 1)[:, None].float() / 255 - self.kind.mean) / self.kind.deviation
        maps = convolve_and_pool(convolve_and_pool(pixels, self.first), self.second)
        vectors: Tensor = self.last(F.relu(self.hidden(maps.flatten(1))))
        return vectors.view(*images.shape[:2], -1)


def convolve_and_pool(images: Tensor, layer: nn.Conv2d) -> Tensor:
    """The layer's 5x5 convolution, a rectifier and 2x2 max pooling: (N, C, h, w) -> (N, O, h / 2 - 2, w / 2 - 2).

    The four outputs that a pool looks at come from one 6x6 window, so all of it is one 3x3 convolution of the image
    with its 2x2 squares as channels: more and wider channels on fewer places, which GPUs are much faster at.
    """
    shifted = [F.pad(layer.weight, (x, 1 - x, y, 1 - y)) for y in (0, 1) for x in (0, 1)]
    kernel = F.pixel_unshuffle(torch.cat(shifted), 2)  # (4 O, 4 C, 3, 3)
    outputs = F.conv2d(F.pixel_unshuffle(images, 2), kernel)
    assert layer.bias is not None
    return F.relu(outputs.view(len(outputs), 4, -1, *outputs.shape[2:]).amax(1) + layer.bias[:, None, None])


def make_embedder(kind: InputKind, width: int) -> nn.Module:
    """The embedder for an input kind."""
    if isinstance(kind, Tokens):
        return TokenEmbedder(kind.vocabulary, width)
    if isinstance(kind, Hints):
        return HintEmbedder(kind, width)
    return ImageEmbedder(kind, width)
