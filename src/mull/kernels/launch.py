"""One Python function for each kernel: descriptors, block sizes, grid.

Shapes: B puzzle, V variable, M = B V token, H width, D value, N head, T tile.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from triton.tools.tensor_descriptor import TensorDescriptor

from mull.kernels import configs
from mull.kernels.attention import attention_forward as attention_forward_kernel
from mull.kernels.attention_backward import attention_backward as attention_backward_kernel
from mull.kernels.fold import BlockWeights
from mull.kernels.token import project_forward as project_forward_kernel
from mull.kernels.token import token_forward as token_forward_kernel
from mull.kernels.token_backward import project_backward as project_backward_kernel
from mull.kernels.token_backward import token_backward as token_backward_kernel
from mull.kernels.weights import weight_gradient as weight_gradient_kernel


@dataclass(frozen=True)
class Plan:
    """What a run of the kernels depends on, apart from tensors."""

    puzzles: int
    variables: int
    width: int
    values: int
    heads: int
    blocks: int
    steps: int
    feedback: bool
    inject: bool
    dropout: float
    dtype: torch.dtype
    """Of the operands of all products, and of what attention reads and writes."""
    state_dtype: torch.dtype = torch.float32
    """Of states in memory; float16 is twice as fast to move and still more precise than bfloat16's products."""
    torch_products: bool = False
    """Gradients of matrices by torch's products and not by our kernel."""

    @property
    def tokens(self) -> int:
        """Rows of everything that is treated token by token."""
        return self.puzzles * self.variables

    @property
    def values_padded(self) -> int:
        """Values as the kernels' products need them."""
        return max(16, 1 << (self.values - 1).bit_length())

    @property
    def sums(self) -> int:
        """Numbers that one tile sums up in the backward pass."""
        return self.width + self.values_padded + 2 * self.width * self.values_padded

    def drop(self) -> dict[str, Any]:
        """The kernels' constants for dropout."""
        scale = 1 / (1 - self.dropout)
        return {"DROP": self.dropout > 0, "THRESHOLD": int(self.dropout * 2**32), "KEPT_SCALE": scale}

    def head(self) -> dict[str, Any]:
        """The kernels' constants for attention."""
        size = self.width // self.heads
        padded = max(16, 1 << (size - 1).bit_length())
        scale = math.log2(math.e) / math.sqrt(size)
        return {
            "V": self.variables,
            "WIDTH": self.width,
            "HEADS": self.heads,
            "HEAD": size,
            "HEAD_P": padded,
            "SCALE": scale,
        }

    def token(self) -> dict[str, Any]:
        """The kernels' constants for work on tokens."""
        cdf = "exact" if self.dtype == torch.float32 else configs.cdf()
        values = {"VALUES": self.values, "VALUES_P": self.values_padded}
        return {"WIDTH": self.width, **values, "INJECT": self.inject, "CDF": cdf, **self.drop()}


def _tiles(tensor: Tensor, rows: int, columns: int) -> TensorDescriptor:
    return TensorDescriptor(tensor, list(tensor.shape), list(tensor.stride()), [rows, columns])


def _part(width: int) -> int:
    """Rows of the projection after attention that are in shared memory at once: all, or a quarter of 256."""
    return width if width <= 128 else 64


def _blocks(count: int, size: int) -> int:
    return -(-count // size)


def project_forward(plan: Plan, x_MH: Tensor, block: BlockWeights, context_MH: Tensor | None, qkv_M3H: Tensor) -> None:
    """Queries, keys and values of the first state."""
    tile, width = configs.token_forward(plan.tokens, plan.width), plan.width
    x = _tiles(x_MH, tile.rows, width)
    project_forward_kernel[(_blocks(plan.tokens, tile.rows),)](
        x, _tiles(block.qkv_w, tile.columns, width), block.qkv_b, block.gain,
        x if context_MH is None else _tiles(context_MH, tile.rows, width), _tiles(qkv_M3H, tile.rows, tile.columns),
        WIDTH=width, INJECT=plan.inject, BM=tile.rows, BN=tile.columns,
        num_warps=tile.warps, num_stages=tile.stages, maxnreg=tile.registers,
    )  # fmt: skip


def _tail(tile: configs.AttentionTile, plan: Plan) -> int:
    """Keys of the second tile, if two tiles are enough."""
    return tile.tail if tile.keys + tile.tail >= plan.variables else 0


def packed_watch(watch_VV: Tensor) -> Tensor:
    """Which keys a query watches, in the bits of 32-bit words, and which queries watch a key: (2, V, words)."""
    both, count = torch.stack([watch_VV, watch_VV.t()]) != 0, len(watch_VV)
    bits = F.pad(both.long(), (0, -count % 32)).view(2, count, -1, 32)
    words: Tensor = (bits << torch.arange(32, device=bits.device)).sum(-1)
    return words.to(torch.int32)


def attention_forward(
    plan: Plan, qkv_M3H: Tensor, mixed_MH: Tensor, lse_BNV: Tensor | None, seed: Tensor, step: int,
    watch: Tensor | None = None, watched_BNV: Tensor | None = None,
) -> None:  # fmt: skip
    """What attention mixes, and with `watch` (see `packed_watch`) the share that watched keys get."""
    constants = plan.head()
    tile = configs.attention_forward(plan.puzzles, plan.heads, plan.variables, constants["HEAD"], watch is not None)
    blocks = _blocks(plan.variables, tile.queries)
    grid = plan.puzzles * plan.heads, 1 if tile.whole else blocks
    attention_forward_kernel[grid](
        qkv_M3H, mixed_MH, mixed_MH if lse_BNV is None else lse_BNV, qkv_M3H if watch is None else watch[0],
        mixed_MH if watched_BNV is None else watched_BNV, seed, step,
        BQ=tile.queries, TURNS=blocks if tile.whole else 1, BK=tile.keys, TAIL=_tail(tile, plan),
        SAVE=lse_BNV is not None, WATCH=0 if watch is None else watch.shape[2], **constants, **plan.drop(),
        num_warps=tile.warps, num_stages=tile.stages, maxnreg=tile.registers,
    )  # fmt: skip


def attention_backward(
    plan: Plan, qkv_M3H: Tensor, mixed_MH: Tensor, grad_mixed_MH: Tensor, lse_BNV: Tensor, grad_qkv_M3H: Tensor,
    seed: Tensor, step: int, watch: Tensor | None = None, watched_BNV: Tensor | None = None,
    grad_watched_BNV: Tensor | None = None,
) -> None:  # fmt: skip
    """The gradient of queries, keys and values; with `watch`, from that of what is watched too."""
    constants = plan.head()
    tile = configs.attention_backward(plan.puzzles, plan.heads, plan.variables, constants["HEAD"], watch is not None)
    tail = _tail(tile, plan)
    blocks = 1 if tail else _blocks(plan.variables, tile.keys)
    parts = 1 if blocks == 1 else blocks + _blocks(plan.variables, tile.queries)
    attention_backward_kernel[(plan.puzzles * plan.heads, parts)](
        qkv_M3H, mixed_MH, grad_mixed_MH, lse_BNV, qkv_M3H if watch is None else watch[1],
        lse_BNV if watched_BNV is None else watched_BNV, lse_BNV if grad_watched_BNV is None else grad_watched_BNV,
        grad_qkv_M3H, seed, step, WATCH=0 if watch is None else watch.shape[2],
        SLOPE=constants["HEAD"] ** -0.5, BQ=tile.queries, BK=tile.keys, TAIL=tail, BLOCKS=blocks, **constants,
        **plan.drop(),
        num_warps=tile.warps, num_stages=tile.stages, maxnreg=tile.registers,
    )  # fmt: skip


def token_forward(
    plan: Plan, x_MH: Tensor, mixed_MH: Tensor, block: BlockWeights, following: BlockWeights, out_w: Tensor,
    out_b: Tensor, feedback: Tensor | None, context_MH: Tensor | None, after_MH: Tensor, logits_MD: Tensor | None,
    qkv_M3H: Tensor | None, seed: Tensor, step: int,
) -> None:  # fmt: skip
    """The state after one block, its logits, and what the next attention reads; those that are None are not written."""
    tile, width = configs.token_forward(plan.tokens, plan.width), plan.width
    part = _part(width)
    x, mixed = _tiles(x_MH, tile.rows, width), _tiles(mixed_MH, tile.rows, part)
    token_forward_kernel[(_blocks(plan.tokens, tile.rows),)](
        x, mixed, _tiles(block.mix_w, width, part), block.mix_b,
        _tiles(block.expand_w, tile.hidden, width), block.expand_b,
        _tiles(block.contract_w, width, tile.hidden), block.contract_b,
        out_w, out_b, out_w if feedback is None else feedback,
        _tiles(following.qkv_w, tile.columns, width), following.qkv_b, following.gain,
        x if context_MH is None else _tiles(context_MH, tile.rows, width), _tiles(after_MH, tile.rows, width),
        out_b if logits_MD is None else logits_MD,
        mixed if qkv_M3H is None else _tiles(qkv_M3H, tile.rows, tile.columns), seed, plan.tokens, step,
        BM=tile.rows, BH=tile.hidden, BN=tile.columns, BC=part, LOGITS=logits_MD is not None,
        FEEDBACK=feedback is not None, NEXT=qkv_M3H is not None, **plan.token(),
        num_warps=tile.warps, num_stages=tile.stages, maxnreg=tile.registers,
    )  # fmt: skip


@dataclass(frozen=True)
class Operands:
    """What the gradients of one block's matrices are products of, for the tokens of some recurrences."""

    normed_qkv: Tensor
    grad_qkv: Tensor
    grad_y: Tensor
    normed_mlp: Tensor
    grad_hidden: Tensor
    hidden: Tensor
    grad_z: Tensor

    @staticmethod
    def widths() -> tuple[int, ...]:
        """Numbers a token in each, in units of the width."""
        return 1, 3, 1, 1, 4, 4, 1

    def part(self, index: int) -> Operands:
        """Those of one recurrence."""
        names = ("normed_qkv", "grad_qkv", "grad_y", "normed_mlp", "grad_hidden", "hidden", "grad_z")
        return Operands(*(getattr(self, name)[index] for name in names))


def token_backward(
    plan: Plan, x_MH: Tensor, after_MH: Tensor, mixed_MH: Tensor, logits_MD: Tensor, grad_logits_MD: Tensor,
    grad_MH: Tensor, block: BlockWeights, following: BlockWeights, out_w: Tensor, feedback: Tensor | None,
    context_MH: Tensor | None, grad_context_MH: Tensor | None, grad_mixed_MH: Tensor, operands: Operands,
    next_operands: Operands | None, sums_TS: Tensor, next_sums_TS: Tensor, scale_M: Tensor, seed: Tensor,
    step: int,
) -> None:  # fmt: skip
    """Gradients from after a block to its attention; without `next_operands` nothing comes from a next recurrence."""
    tile, second = configs.token_backward(plan.tokens, plan.width), configs.mlp_backward(plan.tokens, plan.width)
    width, part, from_next = plan.width, _part(plan.width), operands if next_operands is None else next_operands

    def launch(tile: configs.TokenTile, parts: tuple[bool, bool]) -> None:
        def whole(tensor: Tensor) -> TensorDescriptor:
            return _tiles(tensor, tile.rows, width)

        token_backward_kernel[(_blocks(plan.tokens, tile.rows),)](
            whole(x_MH), whole(after_MH), _tiles(mixed_MH, tile.rows, part), logits_MD, grad_logits_MD, whole(grad_MH),
            _tiles(from_next.grad_qkv, tile.rows, tile.columns),
            _tiles(block.mix_w, width, part), block.mix_b, _tiles(block.expand_w, tile.hidden, width), block.expand_b,
            _tiles(block.contract_w, width, tile.hidden), out_w, out_w if feedback is None else feedback,
            _tiles(following.qkv_w, tile.columns, width), following.gain,
            whole(x_MH if context_MH is None else context_MH),
            whole(grad_MH if grad_context_MH is None else grad_context_MH),
            _tiles(grad_mixed_MH, tile.rows, part), whole(from_next.normed_qkv), whole(operands.normed_mlp),
            whole(operands.grad_y), whole(operands.grad_z), _tiles(operands.hidden, tile.rows, tile.hidden),
            _tiles(operands.grad_hidden, tile.rows, tile.hidden), sums_TS, next_sums_TS, scale_M, seed, plan.tokens,
            step, FIRST=parts[0], SECOND=parts[1],
            SUMS=plan.sums, BM=tile.rows, BH=tile.hidden, BN=tile.columns, BC=part, FEEDBACK=feedback is not None,
            NEXT=next_operands is not None, **plan.token(),
            num_warps=tile.warps, num_stages=tile.stages, maxnreg=tile.registers,
        )  # fmt: skip

    if second is None:
        launch(tile, (True, True))
    else:
        launch(tile, (True, False))
        launch(second, (False, True))


def project_backward(
    plan: Plan, x_MH: Tensor, grad_MH: Tensor, block: BlockWeights, context_MH: Tensor | None,
    grad_context_MH: Tensor | None, operands: Operands, sums_TS: Tensor,
) -> None:  # fmt: skip
    """The first state's gradient, in place."""
    tile, width = configs.token_backward(plan.tokens, plan.width), plan.width
    x, grad = _tiles(x_MH, tile.rows, width), _tiles(grad_MH, tile.rows, width)
    project_backward_kernel[(_blocks(plan.tokens, tile.rows),)](
        x, grad, _tiles(block.qkv_w, tile.columns, width), block.gain,
        x if context_MH is None else _tiles(context_MH, tile.rows, width),
        grad if grad_context_MH is None else _tiles(grad_context_MH, tile.rows, width),
        _tiles(operands.grad_qkv, tile.rows, tile.columns), _tiles(operands.normed_qkv, tile.rows, width), sums_TS,
        WIDTH=width, SUMS=plan.sums, INJECT=plan.inject, BM=tile.rows, BN=tile.columns,
        num_warps=tile.warps, num_stages=tile.stages, maxnreg=tile.registers,
    )  # fmt: skip


def backward_tiles(plan: Plan) -> int:
    """Rows of the sums that the backward pass makes."""
    return _blocks(plan.tokens, configs.token_backward(plan.tokens, plan.width).rows)


class Product:
    """The gradients of one matrix and its bias: `left^T right` and `left`, summed over tokens and calls of `add`."""

    def __init__(self, plan: Plan, left: int, right: int, tokens: int, device: torch.device) -> None:
        """For operands with `left` and `right` columns; about `tokens` rows a call."""
        self.torch = plan.torch_products
        self.tile = configs.weight_gradient(tokens, left, right)
        shares = 1 if self.torch else self.tile.shares
        self.parts_SLR = torch.empty(shares, left, right, device=device)
        self.bias_SL = torch.empty(shares, left, device=device)
        self.started = False

    def add(self, left_KL: Tensor, right_KR: Tensor) -> None:
        """One more batch of tokens."""
        (tokens, left), right = left_KL.shape, right_KR.shape[1]
        if self.torch:
            found, bias = _torch_product(left_KL, right_KR), left_KL.sum(0, dtype=torch.float32)
            self.parts_SLR[0] = self.parts_SLR[0] + found if self.started else found
            self.bias_SL[0] = self.bias_SL[0] + bias if self.started else bias
        else:
            tile = self.tile
            grid = (left // tile.left) * (right // tile.right), tile.shares
            weight_gradient_kernel[grid](
                left_KL, right_KR, self.parts_SLR, self.bias_SL, tokens, LEFT=left, RIGHT=right, SHARES=tile.shares,
                BL=tile.left, BR=tile.right, BK=tile.tokens,
                ROUNDS=_blocks(tokens, tile.shares * tile.tokens), ADD=self.started,
                num_warps=tile.warps, num_stages=tile.stages,
            )  # fmt: skip
        self.started = True

    def total(self) -> tuple[Tensor, Tensor]:
        """The matrix's gradient and the bias's."""
        return self.parts_SLR.sum(0), self.bias_SL.sum(0)


def _torch_product(left_KL: Tensor, right_KR: Tensor) -> Tensor:
    if left_KL.is_cuda and left_KL.dtype != torch.float32:
        return torch.mm(left_KL.t(), right_KR, out_dtype=torch.float32)
    return left_KL.t().float() @ right_KR.float()
