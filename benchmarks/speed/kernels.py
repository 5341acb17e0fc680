"""The fused kernels on one GPU: right, and how fast, each alone and in whole updates.

    python benchmarks/speed/kernels.py                                  # everything
    python benchmarks/speed/kernels.py --parts check,train --batches 16,2048
    python benchmarks/speed/kernels.py --parts tiles --kernels token_backward

`check` compares with the plain path, also what the attention loss reads; `tiles` times candidates for the table in
`mull.kernels.configs`, compiled by several processes beforehand; `train` times updates through the trainer, and `infer`
T=64 recurrences, both in CUDA graphs. The last lines repeat what matters most; `--out` gets everything.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from gpu_jobs import memory_limits
from torch import Tensor
from updates import inference_rate, microseconds, random_boards, update_rate, with_batch

from mull import kernels as fused
from mull.files import write_text
from mull.kernels import configs
from mull.kernels.configs import AttentionTile, GradientTile, TokenTile
from mull.losses import LossWeights
from mull.losses.attention import adjacency
from mull.models.recurrent_transformer import ModelConfig, RecurrentTransformer
from mull.problem import NumpyBatch
from mull.problems.sudoku import Sudoku
from mull.provenance import provenance
from mull.recipes import Recipe, get_recipe

RESULTS = Path(__file__).parents[1] / "results"


@dataclass(frozen=True)
class Shape:
    """A problem and the size of its model."""

    box: int
    width: int
    heads: int
    recipe: str

    @property
    def values(self) -> int:
        """Of one cell."""
        return self.box**2

    @property
    def variables(self) -> int:
        """Cells of a board."""
        return self.box**4


SHAPES = {"9x9": Shape(3, 128, 4, "sudoku-rrn"), "16x16": Shape(4, 256, 8, "sudoku-16x16")}
chosen = {"shape": SHAPES["9x9"]}


def use(name: str) -> None:
    """Measure this shape from now on, in this process, at widths too that are left to the compiled path elsewhere."""
    fused.WIDTHS = tuple({*fused.WIDTHS, 256})
    chosen["shape"] = SHAPES[name]


def shape() -> Shape:
    """The one that is measured."""
    return chosen["shape"]


KERNELS = ("token_forward", "token_backward", "attention_forward", "attention_backward", "weight_gradient")
MODES: dict[str, dict[str, Any]] = {
    "paper": {"dropout": 0.1},
    "best": {"dropout": 0.0, "feedback": True, "inject": True},
    "watch": {"dropout": 0.1},  # as `paper`, with the attention loss
}
SMALL = [TokenTile(rows, hidden, 64, warps, stages) for rows, hidden, warps, stages in [
    (16, 64, 4, 3), (16, 64, 8, 3), (32, 64, 4, 3),
]]  # fmt: skip
LARGE = [TokenTile(*tile) for tile in [
    (64, 64, 64, 4, 3), (64, 32, 64, 4, 3), (64, 64, 64, 4, 2, 168), (128, 32, 64, 4, 3), (128, 32, 32, 4, 3),
    (128, 32, 32, 8, 3, 128),
]]  # fmt: skip
FIRST, SECOND = TokenTile(64, 32, 64, 4, 3), TokenTile(128, 32, 64, 4, 2)
LARGE_BACK = [  # in one kernel, and in two
    (FIRST, None),
    (FIRST, SECOND),
    (replace(FIRST, stages=2, registers=168), SECOND),
    (replace(FIRST, stages=2, registers=128), SECOND),
    (replace(FIRST, rows=32), SECOND),
    (FIRST, FIRST),
    (FIRST, replace(SECOND, warps=8, registers=128)),
    (FIRST, replace(FIRST, stages=2, registers=168)),
    (FIRST, replace(FIRST, stages=2, registers=128)),
]
WITH_TANH = (TokenTile(64, 64, 64, 4, 3), TokenTile(128, 32, 64, 4, 3))
ATTENTION = [AttentionTile(*tile) for tile in [
    (32, 128, 2, 1), (32, 64, 2, 1, 32), (32, 64, 2, 1, 32, True), (32, 64, 2, 1, 32, True, 96), (16, 64, 1, 1, 32),
    (16, 64, 1, 1, 32, True), (32, 64, 2, 1, 32, True, 112),
]]  # fmt: skip
ATTENTION_BACK = [AttentionTile(*tile) for tile in [
    (32, 128, 4, 1), (128, 128, 4, 1), (32, 64, 4, 1, 32), (32, 64, 4, 1, 32, False, 168),
    (16, 64, 4, 1, 32), (16, 64, 4, 1, 32, False, 128), (32, 64, 2, 1, 32), (16, 64, 2, 1, 32),
    (16, 64, 4, 1, 32, False, 168),
]]  # fmt: skip
GRADIENT = [(128, 128, 64, 264, 8, 3), (128, 128, 64, 264, 8, 4), (128, 128, 64, 132, 8, 4), (128, 128, 32, 264, 4, 4),
            (64, 128, 64, 528, 4, 4), (128, 128, 128, 264, 8, 2)]  # fmt: skip


def build(mode: str, device: torch.device, width: int | None = None) -> RecurrentTransformer:
    """A model with weights of a trained one's size."""
    torch.manual_seed(0)
    config = ModelConfig(width=width or shape().width, heads=shape().heads, **MODES[mode])
    model = RecurrentTransformer(Sudoku(shape().box), config).to(device)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.05)
    return model


def boards(rows: int) -> NumpyBatch:
    """Boards with labels that mean nothing: speed does not depend on them."""
    return random_boards(Sudoku(shape().box), rows)


def recipe_of(mode: str) -> Recipe:
    """What is trained in a mode."""
    if mode != "watch":
        return get_recipe(f"{shape().recipe}.{mode}")
    return replace(get_recipe(f"{shape().recipe}.paper"), loss=LossWeights(attention=1))


def passes(
    model: RecurrentTransformer, tokens: Tensor, steps: int, bf16: bool, watching: bool = False
) -> dict[str, Tensor]:
    """Logits, state, what is watched, and all gradients of one training window."""
    model.zero_grad(set_to_none=True)
    torch.manual_seed(1)
    with torch.autocast("cuda", torch.bfloat16, enabled=bf16):
        watch = adjacency(Sudoku(shape().box), tokens.device) if watching else None
        trace = model(tokens, steps, watch_VV=watch)
    found = {"logits": trace.logits_SLBVD, "state": trace.state_BVH}
    if trace.watched_SLBNV is not None:
        found["watched"] = 30 * trace.watched_SLBNV  # or its gradient would be lost in that of the others
    generator = torch.Generator(tokens.device).manual_seed(2)
    loss = torch.zeros((), device=tokens.device)
    for tensor in found.values():
        loss = loss + (tensor.float() * torch.randn(tensor.shape, generator=generator, device=tokens.device)).sum()
    loss.backward()
    found = {name: tensor.detach().float() for name, tensor in found.items()}
    return found | {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def worst(found: dict[str, Tensor], wanted: dict[str, Tensor]) -> dict[str, Any]:
    """Relative errors: logits, state, what is watched, and the parameter that is furthest off."""
    errors = {name: float((found[name] - t).norm() / t.norm().clamp(min=1e-12)) for name, t in wanted.items()}
    values = {name: errors.pop(name) for name in ("logits", "state", "watched") if name in errors}
    name = max(errors, key=lambda name: errors[name])
    return {**values, "gradient": errors[name], "of": name}


CASES = [
    ("paper", 5, 128),
    ("best", 5, 128),
    ("best", 130, 128),
    ("paper", 450, 128),
    ("best", 9, 64),
    ("best", 9, 256),
    ("watch", 5, 128),
    ("watch", 130, 128),
    ("watch", 9, 64),
]


def check_case(mode: str, puzzles: int, width: int, choice: Choice = ()) -> dict[str, Any]:
    """The kernels against the plain path in float32, beside the plain path in bfloat16."""
    force(choice)
    device = torch.device("cuda")
    model = build(mode, device, width).eval()
    tokens = torch.from_numpy(boards(puzzles).inputs).to(device)
    model.kernels, watching = False, mode == "watch"
    exact, rough = (passes(model, tokens, 4, bf16, watching) for bf16 in (False, True))
    model.kernels = True
    return {"kernels": worst(passes(model, tokens, 4, True, watching), exact), "plain bf16": worst(rough, exact)}


def check_masks(choice: Choice = ()) -> dict[str, Any]:
    """Dropout with two sets of tiles, which must drop the same."""
    force(choice)
    device = torch.device("cuda")
    model = build("paper", device).train()
    tokens = torch.from_numpy(boards(130).inputs).to(device)
    usual = passes(model, tokens, 3, True, watching=True)
    configs.FORCED |= {"token_forward": TokenTile(16, 64, 64, 4, 2), "token_backward": TokenTile(16, 64, 64, 4, 2)}
    configs.FORCED["mlp_backward"] = TokenTile(64, 32, 64, 4, 2)
    configs.FORCED["attention_forward"] = AttentionTile(32, 64, 2, 1, 32, True)
    configs.FORCED["attention_backward"] = AttentionTile(32, 64, 4, 1, 32)
    try:
        return worst(passes(model, tokens, 3, True, watching=True), usual)
    finally:
        configs.FORCED.clear()


class Bench:
    """Tensors for one kernel at one size, and a call that launches it."""

    def __init__(self, kernel: str, mode: str, puzzles: int, device: torch.device) -> None:
        from mull.kernels import launch
        from mull.kernels.fold import fold_model
        from mull.kernels.function import _prepared

        self.kernel = kernel
        model = build(mode, device)
        options = MODES[mode]
        fed, inject = bool(options.get("feedback")), bool(options.get("inject"))
        variables, values, h, heads = shape().variables, shape().values, shape().width, shape().heads
        sizes, types = (puzzles, variables, h, values, heads, 1, 1), (torch.bfloat16, torch.float16)
        self.plan = launch.Plan(*sizes, fed, inject, options["dropout"], *types)
        m = self.plan.tokens

        def make(*shape: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
            return torch.randn(*shape, device=device).to(dtype)

        with torch.no_grad():
            fed_back = None if model.feedback is None else model.feedback.weight
            weights = fold_model(model.blocks, model.norm_out, model.output.weight, fed_back, inject)
        flat = [tensor for block in weights.blocks for tensor in block]
        x, after, context = (make(m, h, dtype=torch.float16) for _ in range(3))
        grad = make(m, h, dtype=torch.float32)
        whole = (x, None, weights.out_w, weights.out_b, weights.feedback, *flat)
        _, _, blocks, out_w, out_b, feedback = _prepared(self.plan, whole)
        qkv, mixed, grad_mixed, lse = (
            make(m, 3 * h),
            make(m, h),
            make(m, h),
            make(puzzles * heads, variables, dtype=torch.float32),
        )
        logits, grad_logits = make(m, values, dtype=torch.float32), make(m, values, dtype=torch.float32)
        operands = launch.Operands(*(make(m, w * h) for w in launch.Operands.widths()))
        seed, scale = torch.zeros(1, dtype=torch.int64, device=device), torch.ones(m, device=device)
        watch, watched = None, None
        if mode == "watch":
            watch, watched = launch.packed_watch(adjacency(Sudoku(shape().box), device)), torch.ones_like(lse)
        shown = context if inject else None
        grad_shown = torch.zeros_like(grad) if inject else None
        token = 24 * h * h + 4 * h * 16
        self.flops = {
            "token_forward": token, "token_backward": 34 * h * h + 8 * h * 16, "weight_gradient": 24 * h * h,
            "attention_forward": 4 * variables * h, "attention_backward": 10 * variables * h,
        }[kernel] * m  # fmt: skip

        def token_forward() -> None:
            launch.token_forward(
                self.plan, x, mixed, blocks[0], blocks[0], out_w, out_b, feedback, shown, after, logits, qkv, seed, 3
            )

        def token_backward() -> None:
            launch.token_backward(
                self.plan, x, after, mixed, logits, grad_logits, grad, blocks[0], blocks[0], out_w, feedback, shown,
                grad_shown, grad_mixed, operands, operands, sums, sums, scale, seed, 3,
            )  # fmt: skip

        def attention_forward() -> None:
            launch.attention_forward(self.plan, qkv, mixed, lse, seed, 3, watch, watched)

        def attention_backward() -> None:
            launch.attention_backward(
                self.plan, qkv, mixed, grad_mixed, lse, operands.grad_qkv, seed, 3, watch, watched, watched
            )

        def weight_gradient() -> None:
            lefts = operands.grad_qkv, operands.grad_y, operands.grad_hidden, operands.grad_z
            rights = operands.normed_qkv, mixed, operands.normed_mlp, operands.hidden
            for product, left, right in zip(products, lefts, rights, strict=True):
                product.add(left, right)

        calls: dict[str, Callable[[], None]] = {
            "token_forward": token_forward, "token_backward": token_backward, "attention_forward": attention_forward,
            "attention_backward": attention_backward, "weight_gradient": weight_gradient,
        }  # fmt: skip
        self.call = calls[kernel]

        def prepare() -> None:
            nonlocal sums, products
            if kernel == "token_backward":
                sums = torch.zeros(launch.backward_tiles(self.plan), self.plan.sums, device=device)
            if kernel == "weight_gradient":
                sizes = ((3 * h, h), (h, h), (4 * h, h), (h, 4 * h))
                products = [launch.Product(self.plan, left, right, m, device) for left, right in sizes]
                for product in products:
                    product.parts_SLR.zero_()
                    product.started = True

        self.prepare, sums, products = prepare, grad, list[launch.Product]()


Choice = tuple[tuple[str, Any], ...]
"""What `configs.FORCED` is set to, as something that can be hashed."""


def force(choice: Choice) -> None:
    """Use these tiles, and the table's for other kernels."""
    configs.FORCED.clear()
    configs.FORCED.update(choice)


def candidates(kernel: str, puzzles: int) -> list[Choice]:
    """Tiles worth a try; those of gradients are cut to their matrix, and their shares are for all matrices together."""
    if shape().width > 128:
        return _wide_candidates(kernel)
    large = puzzles * shape().variables >= 4096
    if kernel == "token_backward" and large:
        return [(("token_backward", first), ("mlp_backward", second)) for first, second in LARGE_BACK]
    if kernel.startswith("token"):
        found = [((kernel, tile),) for tile in (LARGE if large else SMALL)]
        return [*found, *((*choice, ("cdf", "tanh")) for choice in found if large and choice[0][1] in WITH_TANH)]
    if kernel == "weight_gradient":
        return [*(((kernel, GradientTile(*tile)),) for tile in GRADIENT), (("torch", True),)]
    return [((kernel, tile),) for tile in (ATTENTION if kernel == "attention_forward" else ATTENTION_BACK)]


def _wide_candidates(kernel: str) -> list[Choice]:
    """For models 256 wide, whose boards have 256 cells.

    With 8 warps on 64 rows, two groups of warps share the columns of each product, 16 of 32 hidden numbers each, and
    need 82 instructions where 4 warps, or 8 on 128 rows, need 50. Those spill, but not in loops.
    """
    tile = TokenTile(64, 32, 32, 4, 2)
    shared = replace(tile, warps=8)
    if kernel == "token_forward":
        tall = replace(shared, rows=128)
        return [((kernel, each),) for each in (tile, shared, tall, replace(tall, hidden=64, columns=64))]
    if kernel == "token_backward":
        firsts = TokenTile(32, 32, 32, 8, 2), shared, replace(shared, columns=64)
        tall, twice = replace(shared, rows=128), replace(tile, stages=1)  # the latter fits twice on a processor
        seconds = shared, tall, replace(tall, hidden=16), replace(shared, hidden=64), twice, replace(tile, hidden=16)
        pairs = [
            (shared, None),
            *((firsts[1], second) for second in seconds),
            *((first, tall) for first in firsts[::2]),
        ]
        return [(("token_backward", first), ("mlp_backward", second)) for first, second in pairs]
    if kernel == "weight_gradient":
        return [*(((kernel, GradientTile(*tile)),) for tile in GRADIENT), (("torch", True),)]
    sizes = [(64, 64, 4, 3), (64, 64, 4, 2), (128, 64, 4, 2), (64, 128, 4, 2), (128, 128, 8, 2), (64, 256, 8, 1),
             (32, 256, 8, 1)]  # fmt: skip
    return [((kernel, AttentionTile(*size)),) for size in sizes]


def do_job(job: tuple[Any, ...]) -> dict[str, Any]:
    """One job of a process that fills Triton's cache: a check, or the kernels of a window, an inference or a tile."""
    kind, device = job[0], torch.device("cuda")
    try:
        if kind == "check":
            return check_case(*job[1:])
        if kind == "masks":
            return check_masks(*job[1:])
        if kind in ("train", "infer"):
            mode, puzzles, choice = job[1:]
            force(choice)
            model = build(mode, device)
            tokens = torch.from_numpy(boards(puzzles).inputs).to(device)
            if kind == "train":
                passes(model.train(), tokens, recipe_of(mode).training.recurrences, True, mode == "watch")
            else:
                with torch.no_grad(), torch.autocast("cuda", torch.bfloat16):
                    model.eval().advance(*model.start(tokens), 3)
        else:
            force(job[2])
            bench = Bench(kind, job[1], 2, device)
            bench.prepare()
            bench.call()
        torch.cuda.synchronize()
    except Exception as error:
        lines = str(error).strip().splitlines() or [""]
        return {"failed": f"{type(error).__name__}: {lines[-1]}"[:300]}
    finally:
        configs.FORCED.clear()
        torch.cuda.empty_cache()
    return {}


def do_jobs(jobs: list[tuple[Any, ...]]) -> dict[str, dict[str, Any]]:
    """Results by job, from several processes, since compiling is slow and knows one core."""
    jobs = list(dict.fromkeys(jobs))
    if not jobs:
        return {}
    began = time.perf_counter()
    name = next(name for name, each in SHAPES.items() if each == shape())
    with multiprocessing.get_context("spawn").Pool(min(14, len(jobs)), use, (name,)) as pool:
        found = dict(zip(map(str, jobs), pool.map(do_job, jobs, chunksize=1), strict=True))
    failed = sum("failed" in result for result in found.values())
    print(f"{len(jobs)} jobs that compile took {time.perf_counter() - began:.0f} s, {failed} failed", flush=True)
    for name, result in found.items():
        if name.startswith(("('check", "('masks")) or ("failed" in result and name.startswith(("('train", "('infer"))):
            print(name[:40], json.dumps(_rounded(result)), flush=True)
    return found


def _rounded(found: Any) -> Any:
    if isinstance(found, dict):
        return {name: _rounded(value) for name, value in found.items()}
    return float(f"{found:.2g}") if isinstance(found, float) else found


def tiles(
    batches: list[int], kernels: list[str], modes: list[str], compiled: dict[str, dict[str, Any]], device: torch.device
) -> list[dict[str, Any]]:
    """Microseconds of every candidate."""
    failed = {job: result["failed"] for job, result in compiled.items() if "failed" in result}
    rows = []
    for kernel in kernels:
        for mode in modes if kernel != "weight_gradient" else modes[:1]:
            for puzzles in batches:
                rows += _candidates_at(kernel, mode, puzzles, failed, device)
    return rows


def _candidates_at(
    kernel: str, mode: str, puzzles: int, failed: dict[str, str], device: torch.device
) -> list[dict[str, Any]]:
    found = []
    bench = Bench(kernel, mode, puzzles, device)
    for tile in candidates(kernel, puzzles):
        row: dict[str, Any] = {"kernel": kernel, "mode": mode, "batch": puzzles, "tile": short(tile)}
        row["choice"] = tile
        try:
            if str((kernel, mode, tile)) in failed:
                raise RuntimeError(failed[str((kernel, mode, tile))])
            force(tile)
            bench.plan = replace(bench.plan, torch_products=tile == (("torch", True),))
            bench.prepare()
            row["us"] = microseconds(bench.call, device)
            row["tflops"] = bench.flops / row["us"] / 1e6
        except Exception as error:
            row["failed"] = f"{type(error).__name__}: {error}"[:160]
            torch.cuda.synchronize()
        found.append(row)
    configs.FORCED.clear()
    found.sort(key=lambda row: row.get("us", math.inf))
    print(f"{kernel} {mode} B={puzzles}", flush=True)
    for row in found:
        text = f"{row['us']:8.1f} us {row['tflops']:5.0f} TF" if "us" in row else "  " + row["failed"]
        print(f"   {text}  {row['tile']}", flush=True)
    return found


def short(choice: Choice) -> str:
    """Tiles in a few characters."""

    def one(tile: Any) -> str:
        if not hasattr(tile, "warps"):
            return str(tile)
        return " ".join(f"{name[0]}{int(value)}" for name, value in vars(tile).items() if value)

    return " then ".join(one(tile) for _, tile in choice)


def fastest(rows: list[dict[str, Any]], mode: str, puzzles: int) -> Choice:
    """The best tiles that were measured for a mode and batch, one for each kernel."""
    best = dict[str, dict[str, Any]]()
    for row in rows:
        here = (row["mode"], row["batch"]) == (mode, puzzles) and "us" in row and "tanh" not in row["tile"]
        if here and row["us"] < best.get(row["kernel"], {"us": math.inf})["us"]:
            best[row["kernel"]] = row
    return tuple(pair for row in best.values() for pair in row["choice"] if pair[0] != "torch")


def train(
    batches: list[int], modes: list[str], plain: list[int], choices: dict[tuple[str, int], Choice], device: torch.device
) -> list[dict[str, Any]]:
    """Puzzles trained a second and peak memory, with kernels, and without them at some sizes."""
    found = []
    for mode in modes:
        for puzzles in batches:
            ways = [
                (True, False),
                *([(True, True)] if puzzles >= 2048 else []),
                *([(False, False)] * (puzzles in plain)),
            ]
            for kernels, frugal in ways:
                row: dict[str, Any] = {"mode": mode, "batch": puzzles, "kernels": kernels, "frugal": frugal}
                force(choices.get((mode, puzzles), ()))
                try:
                    row |= train_rate(mode, puzzles, kernels, device, frugal)
                except Exception as error:
                    row["failed"] = f"{type(error).__name__}: {error}"[:300]
                print("train", json.dumps(row), flush=True)
                found.append(row)
    return found


def train_rate(mode: str, puzzles: int, kernels: bool, device: torch.device, frugal: bool = False) -> dict[str, Any]:
    """Updates through the trainer; `frugal` with little memory."""
    recipe = with_batch(recipe_of(mode), puzzles, kernels)
    with memory_limits(frugal):
        return update_rate(recipe, device)


def _nearest(choices: dict[tuple[str, int], Choice], puzzles: int) -> int:
    """The largest batch with tiles of its own that is not larger, to go by."""
    return max((size for _, size in choices if size <= puzzles), default=0)


def infer(
    batches: list[int], modes: list[str], choices: dict[tuple[str, int], Choice], device: torch.device, steps: int = 64
) -> list[dict[str, Any]]:
    """Puzzles a second at T=64, in one CUDA graph."""
    found = []
    for mode in modes:
        for puzzles in batches:
            row: dict[str, Any] = {"mode": mode, "batch": puzzles}
            force(choices.get((mode, _nearest(choices, puzzles)), ()))
            try:
                tokens = torch.from_numpy(boards(puzzles).inputs).to(device)
                row["puzzles_per_s"] = round(inference_rate(build(mode, device), tokens, steps))
            except Exception as error:
                row["failed"] = f"{type(error).__name__}: {error}"[:300]
            print("infer", json.dumps(row), flush=True)
            found.append(row)
    return found


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", default="9x9", choices=list(SHAPES))
    parser.add_argument("--parts", default="check,tiles,train,infer")
    parser.add_argument("--batches", default="16,128,512,2048", help="for train")
    parser.add_argument("--modes", default="paper,best", help="for train and infer")
    parser.add_argument("--tile-modes", default="paper", help="for tiles")
    parser.add_argument("--tile-batches", default="128,2048", help="for tiles")
    parser.add_argument("--infer-batches", default="128,2048,8192", help="for infer")
    parser.add_argument("--kernels", default=",".join(KERNELS))
    parser.add_argument("--plain", default="2048", help="batches that are trained without kernels too")
    parser.add_argument("--out", type=Path, default=RESULTS / "kernel_speed.json")
    arguments = parser.parse_args()
    use(arguments.case)
    device, parts = torch.device("cuda"), arguments.parts.split(",")
    batches, modes = [int(size) for size in arguments.batches.split(",")], arguments.modes.split(",")
    kernels, tile_modes = arguments.kernels.split(","), arguments.tile_modes.split(",")
    tile_batches = [int(size) for size in arguments.tile_batches.split(",")]
    more = [int(size) for size in arguments.infer_batches.split(",")]
    began = time.perf_counter()
    content: dict[str, Any] = {}
    choices = dict[tuple[str, int], Choice]()
    if "tiles" in parts:
        compile_first = [kernel for kernel in kernels if kernel != "weight_gradient"]
        each = itertools.product(compile_first, tile_modes, tile_batches)
        compiled = do_jobs([(k, m, c) for k, m, b in each for c in candidates(k, b)])
        content["tiles"] = tiles(tile_batches, kernels, tile_modes, compiled, device)
        measured = {m: m if m in tile_modes else tile_modes[0] for m in modes}
        choices = {(m, b): fastest(content["tiles"], like, b) for m, like in measured.items() for b in tile_batches}
        for row in content["tiles"]:
            del row["choice"]
    jobs: list[tuple[Any, ...]] = []
    if "train" in parts:
        jobs += [("train", mode, size, choices.get((mode, size), ())) for mode in modes for size in batches]
    if "infer" in parts:
        jobs += [
            ("infer", mode, size, choices.get((mode, _nearest(choices, size)), ())) for mode in modes for size in more
        ]
    if "check" in parts:
        jobs += [*(("check", *case) for case in (CASES[:2] if choices else CASES)), ("masks",)]
        jobs += [("check", mode, 130, shape().width, choice) for (mode, _), choice in choices.items()]
        jobs += [("masks", choice) for (mode, _), choice in choices.items() if mode == "paper"]
    compiled = do_jobs(jobs)
    content["check"] = {job: found for job, found in compiled.items() if "check" in job or "masks" in job}
    if "train" in parts:
        plain = [int(size) for size in arguments.plain.split(",") if size]
        content["train"] = train(batches, modes, plain, choices, device)
    if "infer" in parts:
        content["infer"] = infer(more, modes, choices, device)
    configs.FORCED.clear()
    content |= {"seconds": time.perf_counter() - began, "provenance": provenance(str(device))}
    write_text(arguments.out, json.dumps(content, indent=1) + "\n")
    print(f"{content['seconds']:.0f} s")


if __name__ == "__main__":
    main()
