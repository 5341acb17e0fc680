"""The Recurrent Transformer of the paper's appendix, and the options that go beyond it.

One token stands for one logical variable. L blocks are applied again and again with the same weights; after every
block of every recurrence the shared output layer (layer norm, then a linear map without bias) gives each variable's
distribution over its values:

    H(0) = E_tok + E_pos;   H(r,l) = block_l(H(r,l-1));   X(r,l) = softmax(layer_norm(H(r,l)) W_out)

Options, off in the paper's setting: `feedback` adds a linear map of the predicted distribution to the state after each
recurrence; `inject` adds the normalised input embedding to what each block's attention reads (not to the residual
stream, which would grow without bound over many recurrences).

Shapes: S step (recurrence), L block, B batch, V variable, D value, H width, N head.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from mull import kernels
from mull.errors import InvalidInput
from mull.kernels.fold import Weights, fold_model
from mull.models.embed import ImageEmbedder, TokenEmbedder, make_embedder
from mull.problem import Images, Problem


@dataclass(frozen=True)
class ModelConfig:
    """Size and options of a Recurrent Transformer."""

    blocks: int = 1
    """Blocks applied in turn in one recurrence (the paper's L)."""
    heads: int = 4
    """Attention heads (H in the paper's names)."""
    width: int = 128
    """Length of a hidden vector (the paper's d_h); the MLP is four times as wide."""
    dropout: float = 0.1
    """Dropout on embeddings, attention and both residual branches."""
    positions: bool = True
    """Learned positional embedding; without it the model cannot tell variables apart (an ablation)."""
    embedding_std: float | None = None
    """Deviation of the initial token and positional embeddings; None is the paper's: 0.02, and zero for positions."""
    feedback: bool = False
    """Feed each recurrence's prediction back into the state (not in the paper)."""
    inject: bool = False
    """Show the input embedding to every block's attention again (not in the paper)."""
    image_dropout: float = 0.0
    """Dropout on the hidden units that read images, and half of it before them (not in the paper)."""

    def __post_init__(self) -> None:
        if self.blocks < 1 or self.heads < 1 or self.width < 1 or self.width % self.heads:
            raise InvalidInput(f"{self.width} numbers cannot be shared by {self.heads} heads in {self.blocks} blocks")
        for name in ("dropout", "image_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise InvalidInput(f"{name} is between 0 and 1, not {getattr(self, name)}")


@dataclass(frozen=True)
class Trace:
    """What a model computed: outputs of every step and block, and where it stopped."""

    logits_SLBVD: Tensor
    state_BVH: Tensor
    given_BV: Tensor | None = None
    """Logits of "this image shows a given value", where a model has to tell that."""
    attention_SLBNVV: Tensor | None = None
    """Attention of every head, on request."""
    watched_SLBNV: Tensor | None = None
    """The share of each variable's attention that the watched ones get, on request."""
    fused_on_cpu: bool = False
    """Whether the kernels for CPUs computed it, which have one for its loss too."""


class Block(nn.Module):
    """Pre-norm self-attention and MLP, each with a residual connection; full attention, no mask."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.width
        self.heads, self.dropout = config.heads, config.dropout
        self.norm_attention = nn.LayerNorm(width)
        self.qkv = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.norm_mlp = nn.LayerNorm(width)
        self.expand = nn.Linear(width, 4 * width)
        self.contract = nn.Linear(4 * width, width)

    def forward(self, state_BVH: Tensor, context_BVH: Tensor | None) -> Tensor:
        """One application of the block."""
        query, key, value = self._heads(state_BVH, context_BVH)
        drop = self.dropout if self.training else 0.0
        return self._after(state_BVH, _attend(query, key, value, drop))

    def with_attention(self, state_BVH: Tensor, context_BVH: Tensor | None) -> tuple[Tensor, Tensor]:
        """The same, and the attention matrices (B, N, V, V), before dropout, that led to it."""
        query, key, value = self._heads(state_BVH, context_BVH)
        attention = (query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])).softmax(-1)
        return self._after(state_BVH, F.dropout(attention, self.dropout, self.training) @ value), attention

    def _after(self, state_BVH: Tensor, mixed_BNVH: Tensor) -> Tensor:
        """The next state from what attention mixed."""
        mixed = mixed_BNVH.transpose(1, 2).flatten(2)
        state_BVH = state_BVH + F.dropout(self.project(mixed), self.dropout, self.training)
        hidden = F.gelu(self.expand(self.norm_mlp(state_BVH)))
        return state_BVH + F.dropout(self.contract(hidden), self.dropout, self.training)

    def _heads(self, state_BVH: Tensor, context_BVH: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value, each (B, N, V, H / N)."""
        normed = self.norm_attention(state_BVH)
        if context_BVH is not None:
            normed = normed + context_BVH
        query, key, value = self.qkv(normed).unflatten(-1, (3, self.heads, -1)).transpose(1, 3).unbind(2)
        return query, key, value


class RecurrentTransformer(nn.Module):
    """Blocks with shared weights across recurrences, over one token per logical variable."""

    def __init__(self, problem: Problem, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        variables = problem.variables()
        self.embed = make_embedder(problem.input_kind(), config.width, config.image_dropout)
        self.positions = nn.Parameter(torch.zeros(variables.count, config.width)) if config.positions else None
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.blocks))
        self.norm_out = nn.LayerNorm(config.width)
        self.output = nn.Linear(config.width, variables.values, bias=False)
        self.feedback = nn.Linear(variables.values, config.width, bias=False) if config.feedback else None
        self.norm_context = nn.LayerNorm(config.width) if config.inject else None
        kind = problem.input_kind()
        self.given = nn.Linear(config.width, 1) if isinstance(kind, Images) and kind.givens else None
        self.kernels = True
        """Use fused kernels where they can run (see `mull.kernels`)."""
        self._step: Callable[..., tuple[Tensor, Tensor, Tensor | None]] = self._recur
        self.apply(_initialise)
        self._initialise_embeddings()

    def _initialise_embeddings(self) -> None:
        std = self.config.embedding_std
        if std is not None and self.positions is not None:
            nn.init.normal_(self.positions, std=std)
        if std is not None and isinstance(self.embed, nn.Embedding):
            nn.init.normal_(self.embed.weight, std=std)
        if std is not None and isinstance(self.embed, ImageEmbedder):
            self.embed.initialise(std)

    def start(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """The first state, and the context that every recurrence may look at again."""
        embedded = self.embed(inputs)
        if self.positions is not None:
            embedded = embedded + self.positions
        context = embedded if self.norm_context is None else self.norm_context(embedded)
        return F.dropout(embedded, self.config.dropout, self.training), context

    def tell_given(self, context_BVH: Tensor) -> Tensor | None:
        """(B, V) logits of "given", read off the embedded images without any effect on them; None if inputs say it."""
        return None if self.given is None else self.given(context_BVH.detach()).squeeze(-1)

    def step(self, state_BVH: Tensor, context_BVH: Tensor) -> tuple[Tensor, Tensor]:
        """One recurrence: the next state, and the logits (L, B, V, D) after each block."""
        return self._recur(state_BVH, context_BVH)[:2]

    def _recur(
        self, state_BVH: Tensor, context_BVH: Tensor, attention: bool = False, watch_VV: Tensor | None = None
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """`step`, and attention (L, B, N, V, V) where asked for, or (L, B, N, V) its sum over watched variables."""
        context = None if self.norm_context is None else context_BVH
        outputs, maps = [], []
        for block in self.blocks:
            assert isinstance(block, Block)
            if attention or watch_VV is not None:
                state_BVH, seen = block.with_attention(state_BVH, context)
                # Summed here, where it is compiled with the softmax: the maps of all recurrences would fill the memory.
                maps.append(seen if watch_VV is None else (seen * watch_VV).sum(-1))
            else:
                state_BVH = block(state_BVH, context)
            outputs.append(self.output(self.norm_out(state_BVH)))
        if self.feedback is not None:
            state_BVH = state_BVH + self.feedback(outputs[-1].softmax(-1))
        return state_BVH, torch.stack(outputs), torch.stack(maps) if maps else None

    def forward(
        self,
        inputs: Tensor,
        steps: int,
        resume: tuple[Tensor, Tensor] | None = None,
        attention: bool = False,
        watch_VV: Tensor | None = None,
    ) -> Trace:
        """Run `steps` recurrences. `resume` is (state_BVH, fresh_B): rows that are not fresh go on from that state.

        The trace has all attention matrices if `attention`; or, with `watch_VV`, how much of variable i's attention
        goes to those j where `watch_VV[i, j]` is 1, which is all that a loss needs to keep.
        """
        state, context = self._start(inputs)
        if resume is not None:
            carried, fresh = resume
            state = torch.where(fresh[:, None, None], state, carried)
        if not attention and self._fused(state):
            outputs, state, watched = self._run_kernels(state, context, steps, watch_VV=watch_VV)
            return Trace(outputs, state, self.tell_given(context), watched_SLBNV=watched)
        if not attention and watch_VV is None and self._fused_on_cpu(state):
            try:
                outputs, after = self._run_on_cpu(state, context, steps)
                return Trace(outputs, after, self.tell_given(context), fused_on_cpu=True)
            except Exception as error:
                self.without_kernels(error)
        logits, maps = list[Tensor](), list[Tensor]()
        for _ in range(steps):
            state, outputs, seen = self._step(state, context, attention, watch_VV)
            logits.append(outputs)
            maps += [] if seen is None else [seen]
        shown = torch.stack(maps) if maps else None
        whole, watched = (shown, None) if watch_VV is None else (None, shown)
        return Trace(torch.stack(logits), state, self.tell_given(context), whole, watched)

    def advance(self, state_BVH: Tensor, context_BVH: Tensor, steps: int) -> tuple[Tensor, Tensor]:
        """Several recurrences: the last state, and the last logits (L, B, V, D)."""
        if self._fused(state_BVH):
            try:
                logits_SLBVD, after_BVH, _ = self._run_kernels(state_BVH, context_BVH, steps, every_step=False)
                return after_BVH, logits_SLBVD[-1]
            except Exception as error:
                self.without_kernels(error)
        for _ in range(steps):
            state_BVH, logits_LBVD = self.step(state_BVH, context_BVH)
        return state_BVH, logits_LBVD

    def without_kernels(self, error: Exception) -> None:
        """From now on the plain path, since a kernel could not be compiled or started here."""
        self.kernels = False
        reason = f"{type(error).__name__}: {error}".splitlines()[0]
        warnings.warn(f"fused kernels cannot run here ({reason}): going on without them", stacklevel=3)

    def _fused(self, state_BVH: Tensor) -> bool:
        puzzles, variables, width = state_BVH.shape
        return self.kernels and kernels.usable(width, self.config.heads, puzzles, variables, state_BVH.device)

    def _fused_on_cpu(self, state_BVH: Tensor) -> bool:
        values = self.output.out_features
        return self.kernels and kernels.usable_on_cpu(self.config.width, self.config.heads, values, state_BVH)

    def _start(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """`start`; by a table, if the kernels for CPUs run and a batch has each pair of token and variable often."""
        often = isinstance(self.embed, TokenEmbedder) and 2 * self.embed.num_embeddings <= len(inputs)
        if often and self.config.dropout == 0 and self._fused_on_cpu(self.output.weight):
            try:
                return self._start_by_table(inputs)
            except Exception as error:
                self.without_kernels(error)
        return self.start(inputs)

    def _start_by_table(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """`start`, computed once for each pair of a token and a variable."""
        from mull.kernels.cpu_lookup import look_up

        assert isinstance(self.embed, TokenEmbedder)
        variables, weight_TH = inputs.shape[1], self.embed.weight
        table_TVH = weight_TH[:, None].expand(-1, variables, -1)
        if self.positions is not None:
            table_TVH = table_TVH + self.positions
        rows_BV = inputs.long() * variables + torch.arange(variables)
        table_KH = table_TVH.flatten(0, 1)
        if self.norm_context is None:
            (state,) = look_up(rows_BV, table_KH)
            return state, state
        state, context = look_up(rows_BV, table_KH, self.norm_context(table_KH))
        return state, context

    def trains_on_cpu_kernels(self) -> bool:
        """Whether the kernels for CPUs do nearly all of the work of a training: images take some too."""
        return isinstance(self.embed, nn.Embedding) and self._fused_on_cpu(self.output.weight)

    def _run_on_cpu(self, state_BVH: Tensor, context_BVH: Tensor, steps: int) -> tuple[Tensor, Tensor]:
        from mull.kernels.cpu import run
        from mull.kernels.cpu_memory import Plan

        bf16 = torch.is_autocast_enabled("cpu")
        with torch.autocast("cpu", enabled=False):
            plan = Plan(**self._plan(state_BVH, steps), bf16=bf16)
            return run(plan, self._folded(), state_BVH, context_BVH if self.config.inject else None)

    def _run_kernels(
        self,
        state_BVH: Tensor,
        context_BVH: Tensor,
        steps: int,
        every_step: bool = True,
        watch_VV: Tensor | None = None,
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        from mull.kernels.configs import state_type
        from mull.kernels.function import run
        from mull.kernels.launch import Plan

        sizes = self._plan(state_BVH, steps)
        plan = Plan(**sizes, puzzles=len(state_BVH), dtype=torch.bfloat16, state_dtype=state_type())
        with torch.autocast(state_BVH.device.type, enabled=False):
            context = context_BVH if self.config.inject else None
            return run(plan, self._folded(), state_BVH, context, every_step, watch_VV)

    def _folded(self) -> Weights:
        feedback = None if self.feedback is None else self.feedback.weight
        return fold_model(self.blocks, self.norm_out, self.output.weight, feedback, self.config.inject)

    def _plan(self, state_BVH: Tensor, steps: int) -> dict[str, Any]:
        """What both kinds of kernels have to know."""
        _, variables, width = state_BVH.shape
        config = self.config
        return {
            "variables": variables,
            "width": width,
            "values": self.output.out_features,
            "heads": config.heads,
            "blocks": config.blocks,
            "steps": steps,
            "feedback": config.feedback,
            "inject": config.inject,
            "dropout": config.dropout if self.training else 0.0,
        }

    def compile_step(self) -> None:
        """Compile one recurrence, not the unrolled loop: seconds instead of minutes; and an embedder of images."""
        self._step = torch.compile(self._recur, dynamic=False)
        if isinstance(self.embed, ImageEmbedder):
            self.embed.compile(dynamic=False)


def _attend(query: Tensor, key: Tensor, value: Tensor, drop: float) -> Tensor:
    """Attention by torch's fused function; on a CPU in float32, since the one for bfloat16 takes four times as long."""
    if query.dtype == torch.bfloat16 and query.device.type == "cpu":
        with torch.autocast("cpu", enabled=False):
            return F.scaled_dot_product_attention(query.float(), key.float(), value.float(), dropout_p=drop)
    return F.scaled_dot_product_attention(query, key, value, dropout_p=drop)


def _initialise(module: nn.Module) -> None:
    """Normal with deviation 0.02 and zero biases, as the paper's code does; convolutions keep torch's default."""
    if isinstance(module, nn.Linear | nn.Embedding):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
