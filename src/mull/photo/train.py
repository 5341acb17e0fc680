"""Train the reader of cells, on rendered boards alone, and write it into the package.

    python -m mull.photo.train                        # minutes on one core of a CPU
    python -m mull.photo.train --fonts DIR --out DIR  # other fonts, another place

It needs the extras `train` and `photo`, and as many fonts as can be had: on Debian, the packages in `PACKAGES`. The
same fonts, seed and versions give the same weights. Every tenth font is kept for validation.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save as save_bytes
from torch import Tensor, nn
from torch.nn import functional as F

from mull.data.streams import stream
from mull.errors import UserError
from mull.export import graph_of
from mull.files import write_bytes
from mull.photo.find import SIDE
from mull.photo.reader import GRAPH, HERE, PIXELS, WEIGHTS, cut_cells, read_cells
from mull.photo.render import Font, find_fonts, flattened, random_tokens
from mull.provenance import provenance

PACKAGES = (
    "fonts-liberation fonts-dejavu-extra fonts-freefont-ttf fonts-open-sans fonts-roboto-unhinted fonts-lato "
    "fonts-cantarell fonts-crosextra-carlito fonts-crosextra-caladea fonts-comic-neue fonts-linuxlibertine "
    "fonts-urw-base35 fonts-texgyre fonts-play fonts-inconsolata fonts-hack fonts-ebgaramond fonts-junction "
    "fonts-quicksand fonts-gfs-didot fonts-gfs-artemisia fonts-courier-prime fonts-cabin fonts-league-spartan "
    "fonts-vollkorn fonts-sil-gentium-basic fonts-sil-charis fonts-sil-andika fonts-dosis fonts-bebas-neue "
    "fonts-prociono fonts-goudybookletter fonts-averia-sans-gwf fonts-averia-serif-gwf fonts-noto-core"
)
"""Debian packages of the fonts that the reader that ships was trained on."""
FOLDERS = (Path("/usr/share/fonts"),)
FEWEST_FONTS = 20
IGNORED, NO_DIGIT = -2, -1
"""Labels of cells that teach nothing, and of those of which no value is to be likelier than another."""
COMMAND = "python -m mull.photo.train"


class Reader(nn.Module):
    """Cells (B, 1, 32, 32) -> logits (B, 10): empty, 1, ..., 9."""

    def __init__(self, hidden: int = 64) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        before = 1
        for width, size, stride in ((16, 5, 2), (32, 3, 2), (48, 3, 1), (40, 3, 2)):
            layers += [nn.Conv2d(before, width, size, stride, size // 2, bias=False), nn.BatchNorm2d(width), nn.ReLU()]
            before = width
        self.features = nn.Sequential(*layers)
        self.hidden = nn.Linear(before * (PIXELS // 8) ** 2, hidden)
        self.last = nn.Linear(hidden, SIDE + 1)

    def forward(self, cells: Tensor) -> Tensor:
        features = F.dropout(self.features(cells).flatten(1), 0.2, self.training)
        logits: Tensor = self.last(F.relu(self.hidden(features)))
        return logits


class _Whole(nn.Module):
    """What `graph_of` takes."""

    def __init__(self, model: Reader) -> None:
        super().__init__()
        self.model = model

    def forward(self, cells: Tensor) -> Tensor:
        logits: Tensor = self.model(cells)
        return logits


def make_cells(
    fonts: list[Font], boards: int, seed: int, name: str, turned: bool = False
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Cells (N, 32, 32) in steps of 1/160 of ink, and what they show; if `turned`, every eighth board lies askew."""
    images, labels = [], []
    for board in range(boards):
        rng = stream(seed, name, board)
        tokens = random_tokens(rng)
        cells = (160 * cut_cells(flattened(tokens, fonts, rng, PIXELS))).astype(np.uint8)
        if turned and board % 8 == 7:
            turns = int(rng.integers(1, 4))
            cells, tokens = np.rot90(cells, turns, (1, 2)), _turned(tokens, turns)
        images.append(cells)
        labels.append(tokens)
    return np.concatenate(images), np.concatenate(labels)


def _turned(tokens: NDArray[np.int64], turns: int) -> NDArray[np.int64]:
    """What cells show after quarter turns. The reader has to doubt digits that lie, to tell which side is up."""
    lying = np.isin(tokens, (3, 4, 7)) if turns == 2 else tokens > 0
    return np.where(lying, NO_DIGIT, np.where(tokens > 0, IGNORED, 0))


def as_input(images: NDArray[np.uint8]) -> Tensor:
    """Cells as the network takes them."""
    return torch.from_numpy(images)[:, None].float() / 160


def fit(
    model: Reader, images: NDArray[np.uint8], labels: NDArray[np.int64], epochs: int, seed: int, batch: int = 256
) -> None:
    """Adam over the cells in random order, its rate on one rise and fall."""
    updates = epochs * (len(images) // batch)
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 4e-3, total_steps=updates)
    table = torch.cat([torch.eye(SIDE + 1), torch.zeros(1, SIDE + 1), torch.full((1, SIDE + 1), 1 / (SIDE + 1))])
    targets = table[torch.from_numpy(labels)]  # rows IGNORED and NO_DIGIT are the last two
    for epoch in range(epochs):
        model.train()
        order, total = stream(seed, "order", epoch).permutation(len(images)), 0.0
        for first in range(0, len(order) - batch + 1, batch):
            rows = order[first : first + batch]
            loss = F.cross_entropy(model(as_input(images[rows])), targets[rows])
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
            total += float(loss.detach())
        print(f"epoch {epoch + 1} of {epochs}: loss {total * batch / len(order):.4f}", flush=True)


@torch.inference_mode()
def accuracy(model: Reader, images: NDArray[np.uint8], labels: NDArray[np.int64]) -> float:
    """Share of cells read right."""
    model.eval()
    right = [model(as_input(images[i : i + 1000])).argmax(dim=1).numpy() for i in range(0, len(images), 1000)]
    return float((np.concatenate(right) == labels).mean())


def write_reader(model: Reader, out: Path, about: dict[str, Any]) -> None:
    """The graph, and the weights beside it with where they came from."""
    tensors = {name: tensor for name, tensor in model.state_dict().items() if tensor.dtype == torch.float32}
    example = torch.rand(2, 1, PIXELS, PIXELS)
    write_bytes(out / GRAPH.name, graph_of(_Whole(model.eval()), {"cells": example}, ["logits"]))
    write_bytes(
        out / WEIGHTS.name, save_bytes(tensors, {"about": json.dumps(about, sort_keys=True)})
    )  # several keys would have no fixed order


def main() -> None:
    """Render, train, validate, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fonts", type=Path, nargs="+", default=FOLDERS, help="folders to look for fonts in")
    parser.add_argument("--boards", type=int, default=2500, help="boards to render")
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=HERE, help="folder for reader.onnx and reader.safetensors")
    arguments = parser.parse_args()
    began = time.perf_counter()
    fonts = find_fonts(arguments.fonts)
    if len(fonts) < FEWEST_FONTS:
        raise UserError(f"only {len(fonts)} fonts found; install more, for example: apt-get install {PACKAGES}")
    held_out, seen = fonts[::10], [font for place, font in enumerate(fonts) if place % 10]
    torch.manual_seed(arguments.seed)
    torch.set_num_threads(1)  # with another number, sums are rounded in another order
    images, labels = make_cells(seen, arguments.boards, arguments.seed, "photo train", turned=True)
    valid = make_cells(held_out, max(arguments.boards // 20, 2), arguments.seed, "photo valid")
    print(f"{len(seen)} fonts, {len(images):,} cells in {time.perf_counter() - began:.0f} s", flush=True)
    model = Reader()
    fit(model, images, labels, arguments.epochs, arguments.seed)
    share = accuracy(model, *valid)
    origin = provenance()
    about = {
        "boards": arguments.boards,
        "epochs": arguments.epochs,
        "seed": arguments.seed,
        "fonts": [Path(font).name for font in seen],
        "validation": f"{share:.5f} of {len(valid[1])} rendered cells in {len(held_out)} other fonts",
        "provenance": {**origin, "command": origin["command"].replace("train.py", COMMAND, 1)},
    }
    write_reader(model, arguments.out, about)
    parameters = sum(p.numel() for p in model.parameters())
    print(f"{parameters:,} parameters, {about['validation']}, {time.perf_counter() - began:.0f} s in all")
    if arguments.out == HERE:
        ours = read_cells(as_input(valid[0][:200])[:, 0].numpy())
        if not np.allclose(ours, torch.softmax(model(as_input(valid[0][:200])), dim=-1).detach().numpy(), atol=1e-4):
            raise RuntimeError("onnxruntime and torch read differently")


if __name__ == "__main__":
    main()
