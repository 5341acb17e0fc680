"""From a file of examples to a model: what `mull fit` does."""

from __future__ import annotations

from pathlib import Path

from mull.data import sets
from mull.errors import InvalidInput
from mull.export import export_model
from mull.problem import Problem
from mull.recipes import override
from mull.recipes.own import fitted
from mull.scoring import evaluate_model
from mull.train import Reporter, train


def fit(
    examples: str,
    out: Path | None,
    device: str | None,
    settings: list[str],
    report: Reporter | None,
    own: Problem | None = None,
) -> None:
    """Train on most rows of a CSV file, write a model file, and report on rows that were held out.

    Without a problem of the user's own, no rule is known, and sizes are inferred from the rows.
    """
    if not Path(examples).is_file():
        raise InvalidInput(f"there is no file {examples}")
    parts = {part: sets.load(f"{examples}@{part}", own=own) for part in ("train", "valid", "test")}
    problem = sets.problem_of(f"{examples}@train", own)
    variables = problem.variables()
    counts = ", ".join(f"{len(batch):,} to {verb}" for batch, verb in zip(parts.values(), VERBS, strict=True))
    print(f"{problem.name}: {variables.count} variables of {variables.values} values; examples: {counts}", flush=True)
    out = out or Path("runs") / problem.name
    recipe = override(fitted(problem, examples), settings)
    train(recipe, out, device, report=report)
    model = out / f"{problem.name}.mull"
    export_model(out, model)
    evaluate_model(str(model), recipe.test.name, str(recipe.steps), device, out / "test.json")
    print(f"\nto solve more: mull solve --model {model} PROBLEM")


VERBS = ("train on", "choose by", "test on")
