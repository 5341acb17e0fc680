"""Token embedders: from a variable's input to a vector, one for each input kind."""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional as F

from mull.problem import Hints, Images, InputKind, Tokens


class TokenEmbedder(nn.Embedding):
    """A vector for each symbol: (B, V) -> (B, V, H)."""

    def forward(self, input: Tensor) -> Tensor:
        """Embed symbols of any integer type."""
        return F.embedding(input.long(), self.weight)


class HintEmbedder(nn.Linear):
    """A linear map of each variable's numbers: (B, V, width) -> (B, V, H)."""

    def forward(self, input: Tensor) -> Tensor:
        """Embed numbers of any type."""
        return super().forward(input.float())


class ImageEmbedder(nn.Module):
    """The LeNet-like network of the paper, shared by all variables: (B, V, height, width) -> (B, V, H)."""

    def __init__(self, kind: Images, width: int) -> None:
        super().__init__()
        rows, columns = (((side - 4) // 2 - 4) // 2 for side in kind.shape)  # after two convolutions and pools
        self.layers = nn.Sequential(
            nn.Conv2d(1, 20, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(20, 50, 5),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(50 * rows * columns, 500),
            nn.ReLU(),
            nn.Linear(500, width),
        )

    def forward(self, images: Tensor) -> Tensor:
        """Embed every image."""
        vectors: Tensor = self.layers(images.flatten(0, 1)[:, None].float())
        return vectors.view(*images.shape[:2], -1)


def make_embedder(kind: InputKind, width: int) -> nn.Module:
    """The embedder for an input kind."""
    if isinstance(kind, Tokens):
        return TokenEmbedder(kind.vocabulary, width)
    if isinstance(kind, Hints):
        return HintEmbedder(kind.width, width)
    return ImageEmbedder(kind, width)
