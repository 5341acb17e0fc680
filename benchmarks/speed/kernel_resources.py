"""What the kernels need of a GPU, without one: registers, spills and shared memory, compiled for an H100 or H200.

    python benchmarks/speed/kernel_resources.py                # the tiles of the table, by batch and mode
    python benchmarks/speed/kernel_resources.py --wide         # and at width 256
    python benchmarks/speed/kernel_resources.py --modes watch  # attention with a loss on it, also of other boards

The kernels are launched with stand-ins that only remember what they were called with.
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
import triton
from torch import Tensor
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.tools.tensor_descriptor import TensorDescriptor

from mull.kernels import launch
from mull.kernels.fold import BlockWeights
from mull.kernels.launch import Operands, Plan, Product

TOOLS = Path(triton.__file__).parent / "backends" / "nvidia" / "bin"
NAMES = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32", torch.int64: "i64",
         torch.int32: "i32"}  # fmt: skip
MODES = {"paper": (False, False, 0.1), "best": (True, True, 0.0), "watch": (False, False, 0.1)}
OPTIONS = ("num_warps", "num_stages", "maxnreg")


class Recorder:
    """Stands in for a kernel: `recorder[grid](...)` compiles it."""

    def __init__(self, kernel: Any) -> None:
        self.kernel, self.found = kernel, dict[str, Any]()

    def __getitem__(self, grid: tuple[int, ...]) -> Recorder:
        self.found["programs"] = grid[0] * (grid[1] if len(grid) > 1 else 1)
        return self

    def __call__(self, *arguments: Any, **named: Any) -> None:
        options = {name: named.pop(name) for name in OPTIONS if name in named}
        names = self.kernel.arg_names
        given = dict(zip(names, arguments, strict=False)) | named
        constants = {name: value for name, value in given.items() if name.isupper()}
        signature = {name: "constexpr" if name in constants else _kind(value) for name, value in given.items()}
        aligned = {
            (names.index(n),): [["tt.divisibility", 16]]
            for n in given
            if n.endswith("_ptr") and "logits" not in n and "watch" not in n
        }
        constexprs = {(names.index(name),): value for name, value in constants.items()}
        source = ASTSource(self.kernel, {name: signature[name] for name in names}, constexprs, aligned)
        compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options=options)
        self.found |= {name: value for name, value in options.items() if value} | _resources(compiled)


def _kind(value: Any) -> str:
    if isinstance(value, TensorDescriptor):
        return f"tensordesc<{NAMES[value.base.dtype]}[{', '.join(map(str, value.block_shape))}]>"
    return f"*{NAMES[value.dtype]}" if isinstance(value, Tensor) else "i32"


def _resources(compiled: Any) -> dict[str, Any]:
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        Path(file.name).write_bytes(compiled.asm["cubin"])
        usage, code = (
            subprocess.run([TOOLS / "cuobjdump", option, file.name], capture_output=True, text=True, check=True).stdout
            for option in ("-res-usage", "-sass")
        )
    found = re.search(r"REG:(\d+) STACK:(\d+)", usage)
    assert found is not None
    registers, stack = map(int, found.groups())
    counts = {name: len(re.findall(rf"\b{name}\b", code)) for name in ("HGMMA", "HMMA", "STL", "LDL", "SHFL")}
    counts["spills_in_loops"] = _spills_in_loops(code)
    return {"registers": registers, "stack": stack, "shared_kib": compiled.metadata.shared / 1024, **counts}


def _spills_in_loops(code: str) -> int:
    """Spilled registers that are read or written again and again, which costs most."""
    lines = [(int(at, 16), text) for at, text in re.findall(r"^\s+/\*([0-9a-f]{4,})\*/\s+(.*)$", code, re.MULTILINE)]
    loops = []
    for at, text in lines:
        if text.startswith("EXIT"):
            break  # what follows is rare, and jumps back from there
        jump = re.search(r"\bBRA\b.*?(0x[0-9a-f]+)", text)
        if jump and int(jump[1], 16) < at:
            loops.append((int(jump[1], 16), at))
    inside = [text for at, text in lines if any(first <= at <= last for first, last in loops)]
    return sum(bool(re.search(r"\b(STL|LDL)\b", text)) for text in inside)


def resources(kernel: str, plan: Plan, watching: bool = False) -> dict[str, Any]:
    """Compile one kernel as it would be launched, those of attention with a loss on attention if `watching`."""
    m, h, d = plan.tokens, plan.width, plan.values

    def make(*shape: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
        return torch.empty(*shape, dtype=dtype)  # never touched, so it takes no memory

    full = torch.float32
    block = BlockWeights(
        make(3 * h, h), make(3 * h, dtype=full), make(h, dtype=full), make(h, h), make(h, dtype=full), make(4 * h, h),
        make(4 * h, dtype=full), make(h, 4 * h), make(h, dtype=full),
    )  # fmt: skip
    x, grad, qkv, mixed = make(m, h, dtype=plan.state_dtype), make(m, h, dtype=full), make(m, 3 * h), make(m, h)
    lse, logits, seed = make(m, plan.heads, dtype=full), make(m, d, dtype=full), make(1, dtype=torch.int64)
    out_w, out_b, sums = make(d, h), make(d, dtype=full), make(m, plan.sums, dtype=full)
    feedback, context, grad_context = make(h, d) if plan.feedback else None, None, None
    if plan.inject:
        context, grad_context = x, grad
    watch = launch.packed_watch(torch.ones(plan.variables, plan.variables)) if watching else None
    watched = lse if watching else None
    operands = Operands(*(make(m, width * h) for width in Operands.widths()))
    recorder = Recorder(getattr(launch, f"{kernel}_kernel"))
    with patch.object(launch, f"{kernel}_kernel", recorder):
        if kernel == "attention_forward":
            launch.attention_forward(plan, qkv, mixed, lse, seed, 0, watch, watched)
        elif kernel == "attention_backward":
            launch.attention_backward(plan, qkv, mixed, mixed, lse, qkv, seed, 0, watch, watched, watched)
        elif kernel == "token_forward":
            launch.token_forward(plan, x, mixed, block, block, out_w, out_b, feedback, context, x, logits, qkv, seed, 0)
        elif kernel == "token_backward":
            launch.token_backward(
                plan, x, x, mixed, logits, logits, grad, block, block, out_w, feedback, context, grad_context, mixed,
                operands, operands, sums, sums, out_b, seed, 0,
            )  # fmt: skip
        elif kernel == "project_forward":
            launch.project_forward(plan, x, block, context, qkv)
        elif kernel == "project_backward":
            launch.project_backward(plan, x, grad, block, context, grad_context, operands, sums)
        else:
            product = Product(plan, 4 * h, h, m, torch.device("cpu"))
            product.add(operands.hidden, mixed)
    return recorder.found


KERNELS = ("attention_forward", "token_forward", "token_backward", "attention_backward", "weight_gradient",
           "project_forward", "project_backward")  # fmt: skip


def main() -> None:
    """Print one line a kernel, mode and batch."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wide", action="store_true")
    parser.add_argument("--modes", default="paper,best,watch")
    parser.add_argument("--batches", default="16,128,512,2048")
    parser.add_argument("--kernels", default=",".join(KERNELS))
    arguments = parser.parse_args()
    assert os.environ.get("TRITON_INTERPRET") != "1", "the interpreter compiles nothing"
    seen, failed = set(), 0
    modes, batches = arguments.modes.split(","), [int(batch) for batch in arguments.batches.split(",")]
    for width in (128, 256) if arguments.wide else (128,):
        for kernel, mode, puzzles in itertools.product(arguments.kernels.split(","), modes, batches):
            watching = mode == "watch"
            if watching and not kernel.startswith("attention"):
                continue
            for variables in (81, 16, 100, 256) if watching and puzzles == batches[0] else (81,):
                plan = Plan(puzzles, variables, width, 9, 4, 1, 1, *MODES[mode], torch.bfloat16, torch.float16)
                case = f"{kernel:18} {mode:5} d={width} V={variables:<3}"
                try:
                    found = resources(kernel, plan, watching)
                except Exception as error:
                    print(f"{case} B={puzzles} failed: {str(error)[-600:]}")
                    failed += 1
                    continue
                text = " ".join(f"{name} {value:g}" for name, value in found.items() if name != "programs")
                if (case, text) not in seen:
                    print(f"{case} B={puzzles:<4} programs {found['programs']:<6} {text}", flush=True)
                seen.add((case, text))
    sys.exit(f"{failed} kernels do not compile" if failed else 0)


if __name__ == "__main__":
    main()
