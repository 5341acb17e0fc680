"""Visual Sudoku and MNIST mapping: images that are drawn once, splits that share none, labels that reach no loss."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from mull.cli import main
from mull.constraints import UNKNOWN
from mull.data import sets
from mull.errors import CorruptFile, InvalidInput, UserError
from mull.evaluate import metrics
from mull.images import join, png
from mull.losses import LossWeights, total_loss
from mull.models.recurrent_transformer import ModelConfig, RecurrentTransformer
from mull.predict import predict
from mull.problem import Batch, Instance
from mull.problems import mnist
from mull.problems.mnist_mapping import SYMBOLS, MnistMapping
from mull.problems.visual_sudoku import VisualSudoku
from mull.recipes import Data, Recipe, Training, get_recipe
from mull.recipes.recipe import withhold
from mull.runtime import TorchRuntime
from mull.solve import NO_RULES, Solver
from mull.testing import check_problem
from mull.trainer import Trainer

pytestmark = pytest.mark.usefixtures("external_data")
SMALL = VisualSudoku(box=2)


def test_contracts() -> None:
    check_problem(VisualSudoku(), instances=3)
    check_problem(SMALL)
    check_problem(MnistMapping(), corruptions_caught=False)  # there is no rule


def test_a_cell_shows_its_given_and_an_empty_one_a_zero() -> None:
    batch = sets.load("satnet-v_test", 20)
    digits = np.where(batch.given, batch.solution + 1, 0)
    images, labels = mnist.load("test")
    known = {image.tobytes(): label for image, label in zip(images, labels, strict=True)}
    shown = [known[image.tobytes()] for board in batch.inputs for image in board]
    np.testing.assert_array_equal(np.array(shown).reshape(digits.shape), digits)


def test_splits_share_no_image() -> None:
    seen = {
        split: {image.tobytes() for board in sets.load(f"satnet-v_{split}", 50).inputs for image in board}
        for split in ("train", "valid", "test")
    }
    assert not seen["train"] & seen["valid"] and not seen["train"] & seen["test"] and not seen["valid"] & seen["test"]
    assert [len(mnist.load(split)[0]) for split in mnist.SPLITS] == [55_000, 5_000, 10_000]


@pytest.mark.parametrize("name", ["satnet-v_test", "rrn-v_valid"])
def test_an_image_is_drawn_once_and_kept(name: str) -> None:
    whole, part = sets.load(name), sets.load(name, 30, seed=7)
    rows = {board.tobytes() for board in whole.inputs}
    if name == "satnet-v_test":  # the whole of its boards: any part of it has the same images
        assert all(board.tobytes() in rows for board in part.inputs)
    np.testing.assert_array_equal(part.inputs, sets.load(name, 30, seed=7).inputs)
    np.testing.assert_array_equal(whole.inputs[:9], sets.load(name).inputs[:9])


def test_a_smaller_training_set_is_part_of_a_larger_one() -> None:
    few, many = sets.load("rrn-v_train", 20), sets.load("rrn-v_train", 40)
    np.testing.assert_array_equal(few.inputs, many.inputs[:20])
    np.testing.assert_array_equal(few.solution, many.solution[:20])


def test_boards_for_validation_are_not_trained_on() -> None:
    train, valid = sets.load("satnet-v_train"), sets.load("satnet-v_valid")
    assert (len(train), len(valid)) == (8_500, 500)
    assert not {row.tobytes() for row in train.solution} & {row.tobytes() for row in valid.solution}


def small_recipe(labels: str = "all", **training: object) -> Recipe:
    settings = Training(
        **{"updates": 120, "batch": 16, "recurrences": 2, "learning_rate": 3e-3, "warmup": 10, **training}  # type: ignore[arg-type]
    )
    data = Data("visual-sudoku-4x4_train", 200, labels)
    model = ModelConfig(width=32, heads=4, dropout=0.0, embedding_std=0.5)
    return Recipe("tiny", "", SMALL, data, data, data, model, settings, LossWeights())


def weights_after(recipe: Recipe, data: Batch[np.ndarray], updates: int = 3) -> list[torch.Tensor]:
    trainer = Trainer(recipe, data, torch.device("cpu"))
    for _ in range(updates):
        trainer.update()
    return [parameter.detach().clone() for parameter in trainer.model.parameters()]


def test_ungrounded_data_hold_no_label_of_a_given() -> None:
    recipe = small_recipe("unknown")
    batch = recipe.train.load(0)
    assert (batch.solution[batch.given] == UNKNOWN).all() and not batch.labelled[batch.given].any()
    assert batch.labelled[~batch.given].all() and (batch.solution[~batch.given] >= 0).all()
    for name in ("visual-sudoku-satnet.paper", "visual-sudoku-rrn.paper", "visual-sudoku.best"):
        assert get_recipe(name).train.labels == "unknown"
    assert get_recipe("visual-sudoku-rrn-grounded.paper").train.labels == "all"


@pytest.mark.parametrize("augment", ["none", "geometric", "all"])
@pytest.mark.parametrize("carry", [0.0, 0.5])
def test_no_label_of_a_given_reaches_the_loss(augment: str, carry: float) -> None:
    """Training on right and on scrambled labels of the givens gives the same bits, however boards are augmented."""
    recipe = small_recipe("unknown", augment=augment, carry=carry)
    data = sets.load("visual-sudoku-4x4_train", 40)
    wrong = np.random.default_rng(0).integers(0, 4, data.solution.shape)
    scrambled = replace(data, solution=np.where(data.given, wrong, data.solution))
    assert (scrambled.solution != data.solution).any()
    hidden = [withhold(batch, batch.given) for batch in (data, scrambled)]
    for ours, theirs in zip(*(weights_after(recipe, batch) for batch in hidden), strict=True):
        assert torch.equal(ours, theirs)
    masked = [replace(batch, labelled=~batch.given) for batch in (data, scrambled)]  # the mask alone does it too
    for ours, theirs in zip(*(weights_after(recipe, batch) for batch in masked), strict=True):
        assert torch.equal(ours, theirs)
    grounded = [weights_after(recipe, batch) for batch in (data, scrambled)]
    assert not all(torch.equal(ours, theirs) for ours, theirs in zip(*grounded, strict=True))


@pytest.mark.parametrize("optimiser", ["adamw", "muon"])
def test_the_network_that_reads_images_has_a_rate_of_its_own(optimiser: str) -> None:
    recipe = small_recipe(optimiser=optimiser, image_rate=0.0, weight_decay=0.1)
    trainer = Trainer(recipe, recipe.train.load(0), torch.device("cpu"))
    before = {name: tensor.clone() for name, tensor in trainer.model.state_dict().items()}
    trainer.update()
    same = {name for name, tensor in trainer.model.state_dict().items() if torch.equal(tensor, before[name])}
    embedding = {name for name in before if name.startswith("embed.")}
    assert embedding and embedding <= same
    assert not {"positions", "output.weight", "blocks.0.qkv.weight"} & same


def test_digits_keep_their_names() -> None:
    assert VisualSudoku().symmetries().value_tokens is None
    recipe = small_recipe(augment="all")
    trainer = Trainer(recipe, recipe.train.load(0), torch.device("cpu"))
    assert trainer.augment is not None and trainer.augment.value_tokens is None


def test_telling_givens_does_not_change_what_is_embedded() -> None:
    torch.manual_seed(0)
    model = RecurrentTransformer(SMALL, ModelConfig(width=32, dropout=0.0))
    batch = sets.load("visual-sudoku-4x4_train", 8)
    tensors = Batch(*(torch.from_numpy(part) for part in (batch.inputs, batch.solution, batch.given, batch.labelled)))
    trace = model(tensors.inputs, 2)
    _, terms = total_loss(trace, tensors, SMALL, LossWeights())
    terms["given"].backward()
    touched = {name for name, parameter in model.named_parameters() if parameter.grad is not None}
    assert touched == {"given.weight", "given.bias"}


def run(recipe: Recipe, data: Batch[np.ndarray]) -> Trainer:
    """Train to the end, and see that the loss falls."""
    trainer = Trainer(recipe, data, torch.device("cpu"))
    trainer.update()
    first = trainer.read_metrics()["loss"]
    while trainer.step < recipe.training.updates - 10:
        trainer.update()
    trainer.read_metrics()
    while trainer.step < recipe.training.updates:
        trainer.update()
    assert trainer.read_metrics()["loss"] < 0.8 * first
    return trainer


@pytest.fixture(scope="module")
def trained() -> Trainer:
    """A short grounded training on 4x4 boards."""
    return run(small_recipe(updates=80, augment="geometric"), sets.load("visual-sudoku-4x4_train", 200))


def test_a_short_grounded_training_learns_to_read(trained: Trainer) -> None:
    test = sets.load("visual-sudoku-4x4_test", 50)
    runtime = TorchRuntime(trained.ema, SMALL)
    scores = metrics(SMALL, predict(runtime, test.inputs, [4])[0], test)
    assert scores["givens_cell"] > 0.7  # by chance: 0.25
    assert {"whole_board", "solution_board", "whole_cell", "solution_cell"} <= scores.keys()
    told = runtime.start(test.inputs).given_BV
    assert told is not None and (told == test.given).mean() > 0.75  # by chance: about 0.6


def test_a_few_ungrounded_boards_are_learned_by_heart() -> None:
    data = small_recipe("unknown").train.load(0)[:8]
    trainer = run(small_recipe("unknown", updates=100, batch=8), data)
    answers = predict(TorchRuntime(trainer.ema, SMALL), data.inputs, [2])[0]
    assert (answers == data.solution)[data.labelled].mean() > 0.6  # by chance: 0.25


def test_an_image_is_solved_and_its_givens_told(trained: Trainer, tmp_path: Path) -> None:
    solver = Solver(TorchRuntime(trained.ema, SMALL), steps=6)
    batch = sets.load("visual-sudoku-4x4_test", 5)
    for row, board in enumerate(batch.inputs):
        (tmp_path / f"{row}.png").write_bytes(png(join(board, 4, 4)))
    answers = solver.solve([str(tmp_path / f"{row}.png") for row in range(5)])
    for answer, inputs in zip(answers, batch.inputs, strict=True):
        again = solver.solve(SMALL.write(Instance(inputs, np.zeros(16, dtype=bool))))  # the image itself as text
        assert (again.solution, again.givens) == (answer.solution, answer.givens)
        assert answer.givens is not None and answer.solution is not None and answer.given_values is not None
        for given, value in zip(answer.givens, answer.solution, strict=True):
            assert given in ("0", value)


def test_recognised_givens_become_a_puzzle_in_text() -> None:
    values = np.array([0, 1, UNKNOWN, UNKNOWN] * 4)
    problem, instance = SMALL.recognised(SMALL.generate(np.random.default_rng(0)), values)
    assert problem.write(instance) == "1200" * 4
    assert problem.given_values(instance).tolist() == values.tolist()


def test_bad_boards() -> None:
    with pytest.raises(InvalidInput, match="side 2 or 3"):
        VisualSudoku(box=4)
    with pytest.raises(InvalidInput, match=r"cannot read the image 'BOARD\.png'"):
        VisualSudoku().parse("BOARD.png")


def test_missing_and_altered_files_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mnist.load.cache_clear()
    monkeypatch.setenv("MULL_DATA", str(tmp_path))
    monkeypatch.setattr(mnist, "MIRRORS", (tmp_path.as_uri(),))
    try:
        with pytest.raises(UserError, match="cannot download MNIST"):
            mnist.load("test")
        path = tmp_path / "mnist" / "t10k-images-idx3-ubyte.gz"
        path.parent.mkdir()
        path.write_bytes(b"nothing")
        with pytest.raises(CorruptFile, match="not a complete gzip file"):
            mnist.load("test")
    finally:
        mnist.load.cache_clear()


def test_the_files_are_fetched_from_a_mirror(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    images, labels = mnist.load("test")
    home = Path(str(mnist.data_folder())) / "mnist"
    mnist.load.cache_clear()
    monkeypatch.setattr(mnist, "MIRRORS", ((tmp_path / "nowhere").as_uri(), home.resolve().as_uri()))
    monkeypatch.setenv("MULL_DATA", str(tmp_path))
    try:
        fetched = mnist.load("test")
        np.testing.assert_array_equal(fetched[0], images)
        np.testing.assert_array_equal(fetched[1], labels)
        assert (tmp_path / "mnist" / "t10k-images-idx3-ubyte.gz").exists()
    finally:
        mnist.load.cache_clear()


def test_mapping_is_a_bijection_and_its_answers_are_symbols() -> None:
    problem = MnistMapping()
    assert sorted(problem.symbol_of.tolist()) == list(range(10))
    batch = sets.load("mnist_test", 50)
    digits = {image.tobytes(): digit for image, digit in zip(*mnist.load("test"), strict=True)}
    for inputs, solution in zip(batch.inputs, batch.solution, strict=True):
        assert problem.write_answer(solution) == SYMBOLS[problem.symbol_of[digits[inputs[0].tobytes()]]]
        np.testing.assert_array_equal(problem.parse_answer(problem.write_answer(solution)), solution)
    with pytest.raises(InvalidInput, match="one of the symbols"):
        problem.parse_answer("I")


def test_a_short_training_of_the_mapping_learns() -> None:
    training = Training(updates=60, batch=64, recurrences=2, learning_rate=2e-3, warmup=5, ema=0.9)
    model = ModelConfig(width=32, heads=4, dropout=0.0, embedding_std=0.5)
    recipe = replace(get_recipe("mnist-mapping.paper"), model=model, training=training)
    trainer = run(recipe, sets.load("mnist_train", 4_000))
    test = sets.load("mnist_test", 300)
    runtime = TorchRuntime(trainer.ema, recipe.problem)
    assert metrics(recipe.problem, predict(runtime, test.inputs, [2])[0], test)["whole_board"] > 0.5  # chance: 0.1
    answer = Solver(runtime, steps=2).solve(recipe.problem.write(Instance(test.inputs[0], test.given[0])))
    assert answer.solution in set(SYMBOLS) and not answer.verified and answer.note == NO_RULES
    assert json.loads(json.dumps(answer.solution)) == answer.solution


# --- the models that ship, from the command line


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(list(arguments))
    out, error = capsys.readouterr()
    return code, out, error


@pytest.fixture
def boards(tmp_path: Path) -> list[tuple[str, str]]:
    """Files with images of test boards, and the boards' solutions."""
    batch = sets.load("satnet-v_test")[:4]
    found = []
    for row in range(len(batch)):
        path = tmp_path / f"{row}.png"
        path.write_bytes(png(join(batch.inputs[row], 9, 9)))
        found.append((str(path), VisualSudoku().write_answer(batch.solution[row])))
    return found


def test_boards_are_solved_from_files(boards: list[tuple[str, str]], capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = command(capsys, "solve", "--model", "visual-sudoku", boards[0][0])
    assert code == 0
    assert "givens recognised:" in out and "verified with the givens as recognised" in out
    assert out.split("\n\n")[2] == VisualSudoku().render(VisualSudoku().parse_answer(boards[0][1]))
    code, out, _ = command(capsys, "solve", "--model", "visual-sudoku", "--json", *(path for path, _ in boards))
    answers = [json.loads(line) for line in out.splitlines()]
    right = [answer["solution"] == solution for answer, (_, solution) in zip(answers, boards, strict=True)]
    assert sum(right) >= 3  # of the test boards, the model gets about 19 of 20
    for answer in answers:
        assert answer["givens"].count("0") > 30
        assert all(given in ("0", value) for given, value in zip(answer["givens"], answer["solution"], strict=True))


def test_an_image_of_another_size_and_colour(boards: list[tuple[str, str]], capsys: pytest.CaptureFixture[str]) -> None:
    path, solution = boards[0]
    image = Image.open(path).resize((400, 380))
    Image.fromarray(255 - np.asarray(image)).save(path)
    code, out, _ = command(capsys, "solve", "--model", "visual-sudoku", "--json", path)
    assert (code, json.loads(out)["solution"]) == (0, solution)


def test_a_csv_of_images(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = str(tmp_path / "boards.csv")
    assert command(capsys, "data", "satnet-v_test", "--count", "3", "--out", out)[0] == 0
    code, printed, _ = command(capsys, "solve", "--model", "visual-sudoku", "-f", out)
    assert code == 0 and printed.count("(image) -> ") == 3


def test_show_prints_what_was_recognised(
    boards: list[tuple[str, str]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture = tmp_path / "out.png"
    code, out, _ = command(capsys, "show", "--model", "visual-sudoku", boards[0][0], "--out", str(picture))
    assert code == 0 and "givens recognised" in out
    assert np.asarray(Image.open(picture)).std() > 10


def test_bad_images_get_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "text.png").write_text("hello")
    for puzzle, message in (
        (str(tmp_path / "none.png"), "No such file"),
        (str(tmp_path / "text.png"), "not an image that can be read"),
        ("53..7....", "cannot read the image"),
    ):
        code, out, error = command(capsys, "solve", "--model", "visual-sudoku", puzzle)
        assert (code, out) == (2, "") and message in error and len(error.splitlines()) == 1
