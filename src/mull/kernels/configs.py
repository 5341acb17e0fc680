"""Block sizes of the kernels by problem size, from `benchmarks/speed/kernels.py`.

A table and not a search at run time, since the first call may be inside the capture of a CUDA graph.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any

import torch


@dataclass(frozen=True)
class TokenTile:
    """How a kernel over tokens is cut up."""

    rows: int
    """Tokens of one program."""
    hidden: int
    """Hidden numbers of the MLP at a time."""
    columns: int
    """Columns of queries, keys and values at a time."""
    warps: int
    stages: int
    registers: int | None = None
    """Most that a thread may use, so that more programs fit on a processor."""


@dataclass(frozen=True)
class AttentionTile:
    """How an attention kernel is cut up."""

    queries: int
    """Queries at a time."""
    keys: int
    """Keys at a time."""
    warps: int
    stages: int
    tail: int = 0
    """If not 0, `keys` and `tail` are all keys, in two tiles: 81 fit into 64 + 32, but not into one of 64."""
    whole: bool = False
    """In the forward pass: one program for all queries of a puzzle and head, so that keys are read once."""
    registers: int | None = None


@dataclass(frozen=True)
class GradientTile:
    """How the product that gives a matrix's gradient is cut up."""

    left: int
    right: int
    tokens: int
    """Tokens at a time."""
    shares: int
    """Programs that share the tokens of one tile of the result."""
    warps: int
    stages: int


FORCED: dict[str, Any] = {}
"""Tiles by kernel that replace those of the table, to measure them."""


def state_type() -> torch.dtype:
    """Of states in memory: float16 is twice as fast to move as float32, and more precise than bfloat16's products."""
    found: torch.dtype = FORCED.get("state", torch.float16)
    return found


def cdf() -> str:
    """How GELU gets its distribution function in 16 bits; Triton's interpreter has no instruction for tanh."""
    found: str = FORCED.get("cdf", "polynomial" if os.environ.get("TRITON_INTERPRET") == "1" else "tanh")
    return found


# From this many tokens on; the last entry that fits counts.
TOKEN_FORWARD: dict[int, TokenTile] = {
    0: TokenTile(16, 64, 64, 4, 3),
    4_096: TokenTile(64, 64, 64, 4, 3),
}
TOKEN_BACKWARD: dict[int, TokenTile] = {
    0: TokenTile(16, 64, 64, 4, 3),
    4_096: TokenTile(32, 64, 64, 4, 3),
    8_192: TokenTile(64, 32, 64, 4, 3),
}
IN_TWO_FROM = 8_192
"""Tokens from which on the backward pass over tokens is two kernels, with the same tiles."""


def _last(table: dict[int, TokenTile], tokens: int) -> TokenTile:
    return table[max(least for least in table if least <= tokens)]


def token_forward(tokens: int, width: int) -> TokenTile:
    """For the forward pass over tokens; with as many hidden numbers at a time as the width, what Triton 3.6 compiles
    for recurrences without logits is wrong (docs/log.md)."""
    tile = _fit(_last(TOKEN_FORWARD, tokens), width)
    return FORCED.get("token_forward") or (replace(tile, hidden=width // 2) if tile.hidden == width else tile)


def token_backward(tokens: int, width: int) -> TokenTile:
    """For the backward pass over tokens."""
    return FORCED.get("token_backward") or _fit(_last(TOKEN_BACKWARD, tokens), width)


def mlp_backward(tokens: int, width: int) -> TokenTile | None:
    """For the second half of the backward pass over tokens; None if one kernel does both halves."""
    if "mlp_backward" in FORCED:
        forced: TokenTile | None = FORCED["mlp_backward"]
        return forced
    return token_backward(tokens, width) if tokens >= IN_TWO_FROM and width <= 128 else None


def _fit(tile: TokenTile, width: int) -> TokenTile:
    if width > 128:  # one row needs twice the registers
        rows, warps = (64, 8) if tile.rows >= 64 else (tile.rows, 8)
        return TokenTile(rows, min(tile.hidden, 32), min(tile.columns, 32), warps, 2)
    return replace(tile, columns=min(tile.columns, width))


def attention_forward(puzzles: int, heads: int, variables: int, head: int, watch: bool = False) -> AttentionTile:
    """For the forward pass of attention; `watch` if there is a loss on it."""
    forced: AttentionTile | None = FORCED.get("attention_forward")
    if forced is not None:
        return forced
    whole = _power_of_two(variables)
    if 64 < variables <= 96:
        return AttentionTile(32, 64, 2, 1, tail=32, whole=True, registers=96 if head <= 32 and not watch else None)
    if whole <= 128:
        return AttentionTile(min(whole, 32), whole, 2, 1)
    return AttentionTile(64, 64, 4, 3)


def attention_backward(puzzles: int, heads: int, variables: int, head: int, watch: bool = False) -> AttentionTile:
    """For the backward pass of attention; keys in one block need no second pass for the queries.

    With `watch`, fewer queries at a time: bits and shares take registers too.
    """
    forced: AttentionTile | None = FORCED.get("attention_backward")
    if forced is not None:
        return forced
    whole = _power_of_two(variables)
    if 64 < variables <= 96 and watch:
        return AttentionTile(16, 64, 2 if head <= 32 else 4, 1, tail=32)
    if 64 < variables <= 96:
        return AttentionTile(32, 64, 2, 1, tail=32)
    if whole <= 128:
        return AttentionTile(whole if puzzles * heads >= 4096 and not watch else min(whole, 32), whole, 4, 1)
    if 128 < whole <= 256 and head <= 32:
        return AttentionTile(32 if watch else 64, whole, 8, 1)
    return AttentionTile(64, 64, 4, 2)


def weight_gradient(tokens: int, left: int, right: int) -> GradientTile:
    """For the gradients of matrices."""
    tile_left, tile_right = min(left & -left, 128), min(right & -right, 128)
    tiles = (left // tile_left) * (right // tile_right)
    if "weight_gradient" in FORCED:
        forced: GradientTile = FORCED["weight_gradient"]
        tiles = (left // forced.left) * (right // forced.right)
        return replace(forced, shares=max(1, forced.shares // tiles))
    shares = max(1, min(132 // tiles, -(-tokens // 64)))
    return GradientTile(tile_left, tile_right, 64, shares, 8 if tile_left * tile_right >= 128 * 128 else 4, 4)


def _power_of_two(count: int) -> int:
    return max(16, 1 << (count - 1).bit_length())
