"""All recurrences of a training window on a CPU, as one autograd function.

Matrix products are torch's, in bfloat16 or float32; all else is compiled by numba (`cpu_token.py`, `cpu_gelu.py`,
`cpu_attention.py`). Each of torch's threads takes a share of the puzzles through all recurrences. Everything that the
backward pass needs is kept, and the memory for it is used again in the next update: new pages cost more than what is
written into them.
Shapes: S recurrence, L block, T = S L, B puzzle, V variable, M = B V token, H width, D value.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from mull.kernels import cpu_attention, cpu_gelu, cpu_gradients, cpu_token
from mull.kernels.cpu_memory import Array, Plan, Prepared, Room, Sums, array, give_back, take_room
from mull.kernels.cpu_threads import everybody, shares_of
from mull.kernels.fold import Weights


def run(plan: Plan, weights: Weights, state_BVH: Tensor, context_BVH: Tensor | None) -> tuple[Tensor, Tensor]:
    """Logits (S, L, B, V, D) and the last state."""
    state = state_BVH.flatten(0, 1).float().contiguous()
    context = None if context_BVH is None else context_BVH.flatten(0, 1).float().contiguous()
    flat = [tensor for block in weights.blocks for tensor in block]
    seed = int(torch.randint(2**31, ())) if plan.dropout else 0
    parameters = (state, context, weights.out_w, weights.out_b, weights.feedback, *flat)
    logits, last = _Recurrences.apply(plan, seed, *parameters)  # type: ignore[no-untyped-call]
    shape = len(state_BVH), plan.variables
    return logits.unflatten(2, shape), last.unflatten(0, shape)


class _Recurrences(torch.autograd.Function):
    """See the top of this file."""

    @staticmethod
    def forward(ctx: Any, plan: Plan, seed: int, *parameters: Tensor | None) -> tuple[Tensor, Tensor]:
        """Logits (S, L, M, D) and the last state (M, H)."""
        state, context, out_w, out_b, feedback, *flat = (None if p is None else p.detach() for p in parameters)
        assert state is not None and out_w is not None and out_b is not None
        weights = Prepared.of(plan, out_w, out_b, feedback, [tensor for tensor in flat if tensor is not None])
        logits = torch.empty(plan.steps, plan.blocks, len(state), plan.values)
        shares, last = shares_of(len(state), plan.variables), torch.empty_like(state)
        rooms = [take_room(plan, share.stop - share.start) for share in shares]

        def go(number: int) -> None:
            share, room = shares[number], rooms[number]
            mine = last.numpy()[share]
            mine[:] = state.numpy()[share]
            beside = mine if context is None else context.numpy()[share]
            _forward(plan, seed, share.start, weights, room, mine, beside, logits.numpy()[:, :, share])

        everybody(go, len(shares))
        ctx.plan, ctx.seed, ctx.weights, ctx.shares, ctx.rooms = plan, seed, weights, shares, rooms
        ctx.save_for_backward(logits)
        ctx.set_materialize_grads(False)
        return logits, last

    @staticmethod
    def backward(ctx: Any, grad_logits: Tensor | None, grad_state: Tensor | None) -> tuple[Tensor | None, ...]:
        """Gradients of what `forward` was given, last recurrence first."""
        plan, weights, shares, rooms = ctx.plan, ctx.weights, ctx.shares, ctx.rooms
        (logits,) = ctx.saved_tensors
        above = torch.zeros_like(logits) if grad_logits is None else grad_logits.contiguous()
        grad = torch.empty(logits.shape[2], plan.width)
        grad_context = torch.empty_like(grad) if plan.inject else None
        sums = [Sums(plan) for _ in shares]

        def go(number: int) -> None:
            share, room = shares[number], rooms[number]
            mine = grad.numpy()[share]
            mine[:] = 0 if grad_state is None else grad_state[share].numpy()
            beside = mine
            if grad_context is not None:
                beside = grad_context.numpy()[share]
                beside[:] = 0
            given, outputs = above.numpy()[:, :, share], logits.numpy()[:, :, share]
            _backward(plan, ctx.seed, share.start, weights, room, outputs, given, mine, beside, sums[number])

        everybody(go, len(shares))
        for room in rooms:
            give_back(plan, room)
        ctx.rooms = None
        found = sums[0]
        for other in sums[1:]:
            found.add(other)
        return None, None, grad, grad_context, *found.gradients(plan)


def _forward(
    plan: Plan, seed: int, begin: int, weights: Prepared, room: Room, x: Array, context: Array, logits_SLMD: Array
) -> None:
    """All recurrences of one thread's tokens; `x` goes from the first state to the last."""
    arrays, kept, passing, scales = room.arrays, room.kept, room.passing, room.scales
    gelu = cpu_gelu.gelu_for_bf16 if plan.bf16 else cpu_gelu.gelu
    branch, expanded = arrays["branch"], arrays["expanded"]
    for index in range(plan.steps * plan.blocks):
        step, block = divmod(index, plan.blocks)
        matrices, vectors = weights.matrices[block], weights.vectors[block]
        normed, read, qkv, mixed = (arrays[n][index] for n in ("normed_qkv", "read", "qkv", "mixed"))
        drops = [plan.drop(seed, index, place, begin) for place in range(3)]
        cpu_token.enter_block(x, vectors["gain"], context, normed, read, scales[0, index], plan.inject)
        torch.mm(kept["read"][index], matrices["qkv_w"].t(), out=kept["qkv"][index])
        shares = arrays["shares"][index]
        cpu_attention.attention_forward(qkv, vectors["qkv_b"], mixed, shares, plan.variables, plan.heads, *drops[0])
        torch.mm(kept["mixed"][index], matrices["mix_w"].t(), out=passing["branch"])
        normed = arrays["normed_mlp"][index]
        cpu_token.after_attention(x, branch, vectors["mix_b"], normed, scales[1, index], *drops[1])
        torch.mm(kept["normed_mlp"][index], matrices["expand_w"].t(), out=passing["expanded"])
        gelu(expanded, vectors["expand_b"], arrays["hidden"][index], arrays["slope"][index])
        torch.mm(kept["hidden"][index], matrices["contract_w"].t(), out=passing["branch"])
        cpu_token.after_mlp(
            x, branch, vectors["contract_b"], arrays["normed_out"][index], scales[2, index],
            weights.out_w, weights.out_b, logits_SLMD[step, block], weights.feedback,
            plan.feedback and block == plan.blocks - 1, *drops[2],
        )  # fmt: skip


def _backward(
    plan: Plan, seed: int, begin: int, weights: Prepared, room: Room, logits_SLMD: Array, grad_logits_SLMD: Array,
    grad: Array, grad_context: Array, sums: Sums,
) -> None:  # fmt: skip
    """All recurrences of one thread's tokens, last first; `grad` goes from the last state back to the first."""
    arrays, kept, passing, scales = room.arrays, room.kept, room.passing, room.scales
    branch, branches = arrays["grad_branch"], passing["grad_branch"]
    read, reads = arrays["grad_read"], passing["grad_read"]

    def gather(block: int, name: str, left: Tensor, right: Tensor) -> None:
        into = sums.matrices[block][name]
        if name in room.units:
            cpu_gradients.add_products(array(left), array(right), into.numpy(), *room.units[name])
        else:
            into += torch.mm(left.t(), right, out=room.products[name])

    for index in reversed(range(plan.steps * plan.blocks)):
        step, block = divmod(index, plan.blocks)
        matrices, vectors, added = weights.matrices[block], weights.vectors[block], sums.vectors[block]
        drops = [plan.drop(seed, index, place, begin) for place in range(3)]
        cpu_token.after_mlp_backward(
            grad, arrays["normed_out"][index], scales[2, index], logits_SLMD[step, block],
            grad_logits_SLMD[step, block], weights.out_w, weights.feedback, plan.feedback and block == plan.blocks - 1,
            branch, added["contract_b"], sums.out_w, sums.out_b, sums.feedback, *drops[2],
        )  # fmt: skip
        gather(block, "contract_w", branches, kept["hidden"][index])
        torch.mm(branches, matrices["contract_w"], out=passing["grad_hidden"])
        cpu_gelu.gelu_backward(arrays["grad_hidden"], arrays["slope"][index], added["expand_b"])
        gather(block, "expand_w", passing["grad_hidden"], kept["normed_mlp"][index])
        torch.mm(passing["grad_hidden"], matrices["expand_w"], out=reads)
        normed = arrays["normed_mlp"][index]
        cpu_token.after_attention_backward(grad, read, normed, scales[1, index], branch, added["mix_b"], *drops[1])
        gather(block, "mix_w", branches, kept["mixed"][index])
        torch.mm(branches, matrices["mix_w"], out=reads)
        cpu_attention.attention_backward(
            arrays["qkv"][index], vectors["qkv_b"], arrays["shares"][index], read, arrays["grad_qkv"], added["qkv_b"],
            sums.zero, plan.variables, plan.heads, *drops[0],
        )  # fmt: skip
        gather(block, "qkv_w", passing["grad_qkv"], kept["read"][index])
        torch.mm(passing["grad_qkv"], matrices["qkv_w"], out=reads)
        normed = arrays["normed_qkv"][index]
        cpu_token.enter_block_backward(
            grad, read, normed, scales[0, index], vectors["gain"], grad_context, added["gain"], plan.inject
        )
