"""All recurrences of a training window as one autograd function, and of an inference as a loop without a trace.

The forward pass keeps, for every block of every recurrence, the state before it, what attention read (unless that is
too much) and mixed, and the logits.
Shapes: S recurrence, L block, B puzzle, V variable, M = B V token, H width, D value, N head, T tile.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from mull.kernels import launch
from mull.kernels.fold import FIELDS, MATRICES, BlockWeights, Weights
from mull.kernels.launch import Operands, Plan, Product

OPERAND_BYTES = 2 << 30
"""Memory that the operands of the matrices' gradients may take, at least those of one recurrence."""
QKV_BYTES = 16 << 30
"""Memory that queries, keys and values of all recurrences may take; the backward pass makes them again beyond it."""


def run(
    plan: Plan, weights: Weights, state_BVH: Tensor, context_BVH: Tensor | None, every_step: bool = True,
    watch_VV: Tensor | None = None,
) -> tuple[Tensor, Tensor, Tensor | None]:  # fmt: skip
    """Logits (S, L, B, V, D) and the last state; without gradients, and if not `every_step`, the last logits alone.

    With `watch_VV`, also the share (S, L, B, N, V) of each variable's attention that those with a 1 in its row get.
    """
    state = state_BVH.flatten(0, 1).float().contiguous()
    context = None if context_BVH is None else context_BVH.flatten(0, 1).float().contiguous()
    seed = torch.randint(2**62, (1,), device=state.device) if plan.dropout else state.new_zeros(1, dtype=torch.int64)
    watch = None if watch_VV is None else launch.packed_watch(watch_VV)
    flat = [tensor for block in weights.blocks for tensor in block]
    parameters = (state, context, weights.out_w, weights.out_b, weights.feedback, *flat)
    if torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in parameters):
        logits, last, watched = _Recurrences.apply(plan, seed, watch, *parameters)  # type: ignore[no-untyped-call]
    else:
        logits, last, watched = _infer(plan, seed, every_step, watch, *_prepared(plan, parameters))
    shape = plan.puzzles, plan.variables
    return logits.unflatten(2, shape), last.unflatten(0, shape), watched


def _room_for_watched(plan: Plan, like: Tensor) -> Tensor:
    shape = plan.steps, plan.blocks, plan.puzzles, plan.heads, plan.variables
    return like.new_empty(shape, dtype=torch.float32)


LARGEST = torch.finfo(torch.float16).max


def _prepared(
    plan: Plan, parameters: tuple[Tensor | None, ...]
) -> tuple[Tensor, Tensor | None, list[BlockWeights], Tensor, Tensor, Tensor | None]:
    """State, context and weights, with the matrices in the type that the products use."""
    state, context, out_w, out_b, feedback, *flat = parameters
    assert state is not None and out_w is not None and out_b is not None

    def cast(tensor: Tensor | None) -> Tensor:
        assert tensor is not None
        tensor = tensor.detach()
        return (tensor.to(plan.dtype) if tensor.dim() == 2 else tensor).contiguous()

    blocks = [BlockWeights(*map(cast, flat[at : at + FIELDS])) for at in range(0, len(flat), FIELDS)]
    if plan.state_dtype == torch.float16:
        state = state.clamp(-LARGEST, LARGEST)  # embeddings know no bounds, and infinity would become NaN
    state, context = state.to(plan.state_dtype), None if context is None else context.to(plan.state_dtype)
    return state, context, blocks, cast(out_w), cast(out_b), None if feedback is None else cast(feedback)


def _infer(
    plan: Plan, seed: Tensor, every_step: bool, watch: Tensor | None, x: Tensor, context: Tensor | None,
    blocks: list[BlockWeights], out_w: Tensor, out_b: Tensor, feedback: Tensor | None,
) -> tuple[Tensor, Tensor, Tensor | None]:  # fmt: skip
    tokens, width, count = plan.tokens, plan.width, plan.blocks
    kept = plan.steps if every_step else 1
    logits = x.new_empty(kept, count, tokens, plan.values, dtype=torch.float32)
    qkv, mixed = x.new_empty(tokens, 3 * width, dtype=plan.dtype), x.new_empty(tokens, width, dtype=plan.dtype)
    after, watched = torch.empty_like(x), None if watch is None else _room_for_watched(plan, x)
    launch.project_forward(plan, x, blocks[0], context, qkv)
    for index in range(plan.steps * count):
        step, block = divmod(index, count)
        seen = None if watched is None else watched[step, block]
        launch.attention_forward(plan, qkv, mixed, None, seed, index, watch, seen)
        shown = logits[step - plan.steps, block] if every_step or step == plan.steps - 1 else None
        launch.token_forward(
            plan, x, mixed, blocks[block], blocks[(block + 1) % count], out_w, out_b,
            feedback if block == count - 1 else None, context, after, shown,
            qkv if index < plan.steps * count - 1 else None, seed, index,
        )  # fmt: skip
        x = after  # each tile is read before it is written
    return logits, after.float(), watched


class _Recurrences(torch.autograd.Function):
    """See the top of this file."""

    @staticmethod
    def forward(
        ctx: Any, plan: Plan, seed: Tensor, watch: Tensor | None, *parameters: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """Logits (S, L, M, D), the last state (M, H), and what is watched (S, L, B, N, V)."""
        x, context, blocks, out_w, out_b, feedback = _prepared(plan, parameters)
        steps, count, tokens, width = plan.steps, plan.blocks, plan.tokens, plan.width
        states = x.new_empty(steps * count, tokens, width)  # of all but the first, so that nothing is copied
        keep = steps if count * steps * tokens * 3 * width * plan.dtype.itemsize <= QKV_BYTES else 1
        qkv = x.new_empty(count, keep, tokens, 3 * width, dtype=plan.dtype)
        mixed = x.new_empty(count, steps, tokens, width, dtype=plan.dtype)
        lse = x.new_empty(count, steps, plan.puzzles * plan.heads, plan.variables, dtype=torch.float32)
        logits = x.new_empty(steps, count, tokens, plan.values, dtype=torch.float32)
        watched = None if watch is None else _room_for_watched(plan, x)
        launch.project_forward(plan, x, blocks[0], context, qkv[0, 0])
        state = x
        for index in range(steps * count):
            step, block = divmod(index, count)
            next_step, next_block = divmod(index + 1, count)
            launch.attention_forward(
                plan, qkv[block, step % keep], mixed[block, step], lse[block, step], seed, index, watch,
                None if watched is None else watched[step, block],
            )  # fmt: skip
            launch.token_forward(
                plan, state, mixed[block, step], blocks[block], blocks[next_block], out_w, out_b,
                feedback if block == count - 1 else None, context, states[index], logits[step, block],
                qkv[next_block, next_step % keep] if next_step < steps else None, seed, index,
            )  # fmt: skip
            state = states[index]
        ctx.plan, ctx.blocks, ctx.count = plan, blocks, len(parameters)
        ctx.save_for_backward(seed, x, context, out_w, feedback, states, qkv, mixed, lse, logits, watch, watched)
        return logits, state.to(torch.float32, copy=True), watched

    @staticmethod
    def backward(
        ctx: Any, grad_logits: Tensor, grad_state: Tensor, grad_watched: Tensor | None
    ) -> tuple[Tensor | None, ...]:
        """Gradients of what `forward` was given, last recurrence first."""
        plan, blocks = ctx.plan, ctx.blocks
        seed, first, context, out_w, feedback, states, qkv, mixed, lse, logits, watch, watched = ctx.saved_tensors
        steps, count, _tokens = plan.steps, plan.blocks, plan.tokens
        grad_logits, grad = grad_logits.float().contiguous(), grad_state.float().clone().contiguous()
        grad_watched = None if watched is None or grad_watched is None else grad_watched.float().contiguous()
        grad_context = None if context is None else torch.zeros_like(context, dtype=torch.float32)
        grad_mixed, scale = torch.empty_like(mixed[0, 0]), grad.new_empty(plan.tokens)
        sums = grad.new_zeros(count, launch.backward_tiles(plan), plan.sums)
        matrices = _MatrixGradients(plan, grad.device)
        for index in reversed(range(steps * count)):
            step, block = divmod(index, count)
            next_step, next_block = divmod(index + 1, count)
            before = states[index - 1] if index else first
            launch.token_backward(
                plan, before, states[index], mixed[block, step], logits[step, block],
                grad_logits[step, block], grad, blocks[block], blocks[next_block], out_w,
                feedback if block == count - 1 else None, context, grad_context, grad_mixed,
                matrices.operands(block, step), matrices.operands(next_block, next_step) if next_step < steps else None,
                sums[block], sums[next_block], scale, seed, index,
            )  # fmt: skip
            if block == 0 and step % matrices.group == 0:
                matrices.flush(step, mixed)
            if qkv.shape[1] < steps:
                launch.project_forward(plan, before, blocks[block], context, qkv[block, 0])
            launch.attention_backward(
                plan, qkv[block, step % qkv.shape[1]], mixed[block, step], grad_mixed, lse[block, step],
                matrices.operands(block, step).grad_qkv, seed, index, watch,
                None if watched is None else watched[step, block],
                None if grad_watched is None else grad_watched[step, block],
            )  # fmt: skip
        launch.project_backward(plan, first, grad, blocks[0], context, grad_context, matrices.operands(0, 0), sums[0])
        matrices.finish()
        found = _collect(plan, sums.sum(1), matrices, feedback is not None)
        return None, None, None, grad, grad_context, *found


class _MatrixGradients:
    """The gradients of all blocks' matrices: operands of some recurrences wait here for one product."""

    def __init__(self, plan: Plan, device: torch.device) -> None:
        self.plan, width, widths = plan, plan.width, Operands.widths()
        each = sum(widths) * width * plan.tokens * plan.blocks * plan.dtype.itemsize
        self.group = max(1, min(plan.steps, OPERAND_BYTES // each))
        self.buffers = [
            Operands(
                *(torch.empty(self.group, plan.tokens, w * width, dtype=plan.dtype, device=device) for w in widths)
            )
            for _ in range(plan.blocks)
        ]
        rows = self.group * plan.tokens
        self.products = [
            {name: Product(plan, left * width, right * width, rows, device) for name, (left, right) in MATRICES.items()}
            for _ in range(plan.blocks)
        ]

    def operands(self, block: int, step: int) -> Operands:
        """Where one recurrence of one block leaves its operands."""
        return self.buffers[block].part(step % self.group)

    def flush(self, first: int, mixed_LSMH: Tensor) -> None:
        """Multiply what recurrences from `first` on left; block 0's queries, keys and values are one step behind."""
        end = min(first + self.group, self.plan.steps)
        for block, (buffers, products) in enumerate(zip(self.buffers, self.products, strict=True)):
            there = slice(0, end - first)

            def add(name: str, left: Tensor, right: Tensor, part: slice = there, into: Any = products) -> None:
                into[name].add(left[part].flatten(0, 1), right[part].flatten(0, 1))

            products["mix_w"].add(buffers.grad_y[there].flatten(0, 1), mixed_LSMH[block, first:end].flatten(0, 1))
            add("expand_w", buffers.grad_hidden, buffers.normed_mlp)
            add("contract_w", buffers.grad_z, buffers.hidden)
            if block > 0 or first + self.group < self.plan.steps:
                add("qkv_w", buffers.grad_qkv, buffers.normed_qkv)
            elif end - first > 1:
                add("qkv_w", buffers.grad_qkv, buffers.normed_qkv, slice(1, end - first))

    def finish(self) -> None:
        """The first recurrence's queries, keys and values."""
        self.products[0]["qkv_w"].add(self.buffers[0].grad_qkv[0], self.buffers[0].normed_qkv[0])


def _collect(plan: Plan, sums_LS: Tensor, matrices: _MatrixGradients, feedback: bool) -> list[Tensor | None]:
    """Gradients in the order of the parameters: output layer, feedback, then each block's."""
    width, padded, values = plan.width, plan.values_padded, plan.values
    sizes = [width, padded, width * padded, width * padded]
    gain, out_b, out_w, fed = torch.split(sums_LS, sizes, 1)
    grad_out = out_w.sum(0).view(width, padded)[:, :values].t()
    grad_feedback = fed.sum(0).view(width, padded)[:, :values] if feedback else None
    found: list[Tensor | None] = [grad_out, out_b.sum(0)[:values], grad_feedback]
    for block, products in enumerate(matrices.products):
        found += [*products["qkv_w"].total(), gain[block] if plan.inject else None]
        for name in ("mix_w", "expand_w", "contract_w"):
            found += products[name].total()
    return found
