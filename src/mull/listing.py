"""What there is: problems, recipes, models and data sets, as `mull list` prints them."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec

from mull.errors import unknown
from mull.hub import Card
from mull.terminal import table


def print_list(what: str | None) -> None:
    """Print one list, or all of them."""
    lists: dict[str, Callable[[], str]] = {
        "problems": problems,
        "recipes": recipes,
        "models": models,
        "data": data,
    }
    if what is not None:
        if what not in lists:
            raise unknown("list", what, lists)
        print(lists[what]())
        return
    print("\n\n".join(f"{name}\n{make()}" for name, make in lists.items()))


def problems() -> str:
    """The problems, their sizes, and what each asks for."""
    from mull.problems import PROBLEMS

    rows = []
    for name, make in sorted(PROBLEMS.items()):
        problem = make()
        variables = problem.variables()
        rows.append([name, variables.count, variables.values, _first_line(type(problem).__doc__)])
    return table(["name", "variables", "values", "description"], rows)


def recipes() -> str:
    """The recipes for `mull train`."""
    if find_spec("torch") is None:
        return "(recipes are there to train: install mull[train])"
    from mull.recipes import RECIPES

    return table(["name", "description"], [[name, make().description] for name, make in sorted(RECIPES.items())])


def models() -> str:
    """The models that ship, their sizes, what each was trained on and what it scored."""
    from mull.hub import read_card, shipped

    rows = []
    for name, path in shipped().items():
        card = read_card(path)
        recipe, trained_on = (card.provenance.get(key, "-") for key in ("recipe", "data"))
        size = f"{path.stat().st_size / 1e6:.1f} MB"
        rows.append([name, card.problem.name, card.parameters, size, card.steps, recipe, trained_on, _scores(card)])
    heads = ["name", "problem", "parameters", "file", "recurrences", "recipe", "trained on", "scores"]
    return table(heads, rows)


def data() -> str:
    """The data sets for `mull eval` and `mull data`."""
    from mull.data import sets

    return table(["name", "rows", "description"], [[row.name, row.rows, row.description] for row in sets.describe()])


def _scores(card: Card) -> str:
    """Share of right answers by data set, at the card's number of recurrences where that was measured."""
    shown = []
    for name, score in card.scores.items():
        right = score["right"]
        steps = str(card.steps) if str(card.steps) in right else max(right, key=int)
        shown.append(f"{100 * right[steps]:.2f} % of {name}")
    return ", ".join(shown) or "-"


def _first_line(text: str | None) -> str:
    return (text or "").strip().splitlines()[0]
