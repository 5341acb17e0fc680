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

    def __init__(self, kind: Images, width: int, dropout: float = 0.0) -> None:
        super().__init__()
        rows, columns = (((side - 4) // 2 - 4) // 2 for side in kind.shape)
        self.kind, self.dropout = kind, dropout
        self.first, self.second = nn.Conv2d(1, 20, 5), nn.Conv2d(20, 50, 5)
        self.hidden, self.last = nn.Linear(50 * rows * columns, 500), nn.Linear(500, width)

    def initialise(self, std: float) -> None:
        """Weights that keep the size of what passes through them, and vectors of about the given deviation."""
        for layer in (self.first, self.second, self.hidden):
            nn.init.kaiming_normal_(layer.weight, nonlinearity="relu")
        nn.init.normal_(self.last.weight, std=std / math.sqrt(self.last.in_features))

    @torch.no_grad()
    def standardise(self, images: Tensor, std: float) -> None:
        """Shift and scale the vectors: each of their numbers gets mean 0 and this deviation over these images.

        Without it, most of a vector is the same for all images, and similar digits lie close together.
        """
        vectors = self(images).flatten(0, 1)
        scale = std / vectors.std(dim=0)
        self.last.weight.mul_(scale[:, None])
        self.last.bias.sub_(vectors.mean(dim=0)).mul_(scale)

    def forward(self, images: Tensor) -> Tensor:
        """Embed every image; half as much dropout before the hidden units as after them."""
        pixels = (images.flatten(0, 1)[:, None].float() / 255 - self.kind.mean) / self.kind.deviation
        maps = convolve_and_pool(convolve_and_pool(pixels, self.first, pools=2), self.second, pools=1)
        hidden = F.relu(self.hidden(F.dropout(maps.flatten(1), self.dropout / 2, self.training)))
        vectors: Tensor = self.last(F.dropout(hidden, self.dropout, self.training))
        return vectors.view(*images.shape[:2], -1)


def convolve_and_pool(images: Tensor, layer: nn.Conv2d, pools: int) -> Tensor:
    """The layer's 5x5 convolution, a rectifier and 2x2 max pooling: (N, C, h, w) -> (N, O, h / 2 - 2, w / 2 - 2).

    All outputs that a square of `pools` x `pools` pools looks at come from one window, so one product with a matrix
    that holds the kernel once for each of them does it all: fewer and larger numbers to move than a convolution has,
    and what GPUs are fastest at. `pools` is 1 or 2.
    """
    outputs, stride = layer.out_channels, 2 * pools
    blocks = F.pixel_unshuffle(images, stride).permute(0, 2, 3, 1)  # (N, h / stride, w / stride, C * stride**2)
    reach = 1 + 4 // stride  # blocks along the side of a window
    rows, columns = blocks.shape[1] - reach + 1, blocks.shape[2] - reach + 1
    parts = [blocks[:, y : y + rows, x : x + columns] for y in range(reach) for x in range(reach)]
    shifts = [(y, x) for y in range(stride) for x in range(stride)]
    shifted = [F.pad(layer.weight, (x, stride - 1 - x, y, stride - 1 - y)) for y, x in shifts]
    kernel = F.pixel_unshuffle(torch.cat(shifted), stride).permute(2, 3, 1, 0).flatten(0, 2)
    found = torch.stack(parts, dim=3).flatten(3) @ kernel  # (N, rows, columns, stride**2 * O)
    assert layer.bias is not None
    pooled = found.view(-1, rows, columns, pools, 2, pools, 2, outputs).amax((4, 6)) + layer.bias
    return F.relu(pooled).permute(0, 5, 1, 3, 2, 4).reshape(-1, outputs, rows * pools, columns * pools)


def make_embedder(kind: InputKind, width: int, image_dropout: float = 0.0) -> nn.Module:
    """The embedder for an input kind."""
    if isinstance(kind, Tokens):
        return TokenEmbedder(kind.vocabulary, width)
    if isinstance(kind, Hints):
        return HintEmbedder(kind, width)
    return ImageEmbedder(kind, width, image_dropout)
