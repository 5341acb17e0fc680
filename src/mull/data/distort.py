"""Images turned, scaled, sheared and shifted a little at random, anew for every batch, on the device that trains.

It needs no label and does not tell what an image shows, so ungrounded trainings may use it; the paper's do not.

Shapes: B batch, V variable, h and w pixels.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor
from torch.nn import functional as F

TURN = math.radians(12)
STRETCH = 0.12
SHEAR = 0.12
SHIFT = 0.14
"""Largest angle, change of each side's length, shear and shift (as a share of half the image) at strength 1."""


def distort(images_BVhw: Tensor, strength: float, generator: torch.Generator | None = None) -> Tensor:
    """Every image under an affine map of its own; what comes from outside is background (0)."""
    flat = images_BVhw.flatten(0, 1)[:, None]
    drawn = torch.rand(6, len(flat), device=flat.device, generator=generator) * 2 - 1
    grid = F.affine_grid(_maps(strength * drawn), list(flat.shape), align_corners=False)
    found = F.grid_sample(flat.float(), grid, mode="bilinear", padding_mode="zeros", align_corners=False)
    return found.round().clamp(0, 255).to(images_BVhw.dtype).view_as(images_BVhw)


def _maps(drawn_6N: Tensor) -> Tensor:
    """(N, 2, 3): where each pixel of the new image comes from, by six numbers between -1 and 1 each."""
    turn, wide, high, shear, right, down = drawn_6N
    cosine, sine = torch.cos(TURN * turn), torch.sin(TURN * turn)
    wide, high, shear = 1 + STRETCH * wide, 1 + STRETCH * high, SHEAR * shear
    rows = [wide * cosine, shear * cosine - high * sine, SHIFT * right]
    rows += [wide * sine, shear * sine + high * cosine, SHIFT * down]
    return torch.stack(rows, dim=1).view(-1, 2, 3)
