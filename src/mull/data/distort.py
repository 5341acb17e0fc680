"""Images turned, scaled, sheared, shifted and bent a little at random, anew for every batch, on the device that trains.

It needs no label and does not tell what an image shows, so ungrounded trainings may use it; the paper's do not.

Shapes: B batch, V variable, h and w pixels.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from mull.data.warp import BEND, KNOTS, rows


def distort(
    images_BVhw: Tensor, strength: float | Tensor, generator: torch.Generator | None = None, bend: float = 0.0
) -> Tensor:
    """Every image under an affine map of its own, and bent; what comes from outside is background (0).

    `bend` is a share of the strength, which may be a tensor: a captured CUDA graph reads it anew each time.
    """
    flat = images_BVhw.flatten(0, 1)[:, None]
    drawn = torch.rand(6, len(flat), device=flat.device, generator=generator) * 2 - 1
    grid = F.affine_grid(_maps(strength * drawn), list(flat.shape), align_corners=False)
    if bend:
        knots = torch.rand(len(flat), 2, KNOTS, KNOTS, device=flat.device, generator=generator) * 2 - 1
        across, down = (_between(side, flat.device) for side in (flat.shape[3], flat.shape[2]))
        shifts = torch.einsum("ncij,yi,xj->nyxc", knots * (strength * bend * BEND), down, across)
        grid = grid + shifts
    found = F.grid_sample(flat.float(), grid, mode="bilinear", padding_mode="zeros", align_corners=False)
    return found.round().clamp(0, 255).to(images_BVhw.dtype).view_as(images_BVhw)


def _between(side: int, device: torch.device) -> Tensor:
    """(side, KNOTS): how much of each knot there is at each pixel, by its distance to the two next to it.

    As a product, since torch's own interpolation takes far longer for many small images.
    """
    places = torch.linspace(0, KNOTS - 1, side, device=device)
    return (1 - (places[:, None] - torch.arange(KNOTS, device=device)).abs()).clamp(min=0)


def _maps(drawn_6N: Tensor) -> Tensor:
    """(N, 2, 3): where each pixel of the new image comes from."""
    return torch.stack(rows(drawn_6N, torch.cos, torch.sin), dim=1).view(-1, 2, 3)
