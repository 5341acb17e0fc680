"""The fused kernels: Triton's interpreter needs a process of its own, since Triton reads its setting when imported."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
import torch

from mull import kernels
from mull.models.recurrent_transformer import ModelConfig, RecurrentTransformer
from mull.problems.sudoku import Sudoku

needs_triton = pytest.mark.skipif(find_spec("triton") is None, reason="needs Triton")


def interpret(root: Path, marked: str) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", "-m", marked]
    command += map(str, sorted((root / "tests" / "interpreted").glob("check_*.py")))
    environment = os.environ | {"TRITON_INTERPRET": "1", "OMP_NUM_THREADS": "1"}
    environment = {name: value for name, value in environment.items() if not name.startswith("PYTEST_")}
    result = subprocess.run(command, capture_output=True, text=True, cwd=root, env=environment, check=False)
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-1000:]


@needs_triton
def test_kernels_in_the_interpreter(root: Path) -> None:
    interpret(root, "not slow")


@needs_triton
@pytest.mark.slow
def test_kernels_of_more_sizes_in_the_interpreter(root: Path) -> None:
    interpret(root, "slow")


def compile_for_hopper(root: Path, *options: str) -> None:
    command = [sys.executable, str(root / "benchmarks" / "speed" / "kernel_resources.py"), *options]
    paths = os.pathsep.join([str(root / "src"), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"TRITON_INTERPRET": "0", "PYTHONPATH": paths}
    result = subprocess.run(command, capture_output=True, text=True, cwd=root, env=environment, check=False)
    assert result.returncode == 0, result.stdout[-5000:] + result.stderr[-2000:]


@needs_triton
def test_kernels_compile_without_a_gpu(root: Path) -> None:
    """The interpreter allows what the compiler does not."""
    compile_for_hopper(root, "--batches", "16", "--modes", "best,watch")


@needs_triton
@pytest.mark.slow
def test_kernels_of_all_sizes_compile_without_a_gpu(root: Path) -> None:
    compile_for_hopper(root, "--wide")


def test_the_plain_path_runs_where_kernels_cannot(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not kernels.usable(128, 4, 2, 81, torch.device("cpu"))
    assert kernels.supported(128, 4, 2, 81)
    for width, heads, puzzles, variables in ((320, 4, 2, 81), (128, 4, 2, 5_000), (128, 4, 2**20, 81), (128, 4, 0, 81)):
        assert not kernels.supported(width, heads, puzzles, variables)
    model = RecurrentTransformer(Sudoku(box=2), ModelConfig(width=16, heads=2))
    tokens = torch.zeros(2, 16, dtype=torch.uint8)
    assert model(tokens, 2).logits_SLBVD.shape == (2, 1, 2, 16, 4)


def test_importing_the_model_does_not_import_triton(root: Path) -> None:
    code = "import sys, mull.models.recurrent_transformer, mull.kernels; sys.exit('mull.kernels.launch' in sys.modules)"
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(root / "src"), os.environ.get("PYTHONPATH", "")])}
    assert subprocess.run([sys.executable, "-c", code], env=environment, check=False).returncode == 0


def test_a_kernel_that_cannot_run_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    model = RecurrentTransformer(Sudoku(box=2), ModelConfig(width=16, heads=2)).eval()

    def fail(*_: object, **__: object) -> None:
        raise ValueError("out of shared memory\nand more")

    monkeypatch.setattr(RecurrentTransformer, "_run_kernels", fail)
    monkeypatch.setattr(kernels, "usable", lambda *_: True)
    state, context = model.start(torch.zeros(2, 16, dtype=torch.uint8))
    with torch.no_grad(), pytest.warns(UserWarning, match=r"cannot run here \(ValueError: out of shared memory\)"):
        _, logits = model.advance(state, context, 2)
    assert logits.shape == (1, 2, 16, 4) and not model.kernels
