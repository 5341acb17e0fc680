"""Recipes by name: a function that returns a whole `Recipe`, one for each row of each table."""

from __future__ import annotations

from collections.abc import Callable

from mull.errors import unknown
from mull.recipes import nonogram, shortest_path, sudoku
from mull.recipes.recipe import Data, Recipe, Training, from_dict, override, to_dict

__all__ = ["RECIPES", "Data", "Recipe", "Training", "from_dict", "get_recipe", "override", "to_dict"]

RECIPES: dict[str, Callable[[], Recipe]] = {
    "sudoku-4x4": sudoku.sudoku_4x4,
    "sudoku-satnet.paper": sudoku.sudoku_satnet_paper,
    "sudoku-rrn.paper": sudoku.sudoku_rrn_paper,
    "sudoku-rrn-9k.paper": sudoku.sudoku_rrn_9k_paper,
    "sudoku-rrn.best": sudoku.sudoku_rrn_best,
    "nonogram-7.paper": nonogram.nonogram_7_paper,
    "nonogram-15.paper": nonogram.nonogram_15_paper,
    "shortest-path.paper": shortest_path.shortest_path_paper,
    "shortest-path-12.paper": shortest_path.shortest_path_12_paper,
}


def get_recipe(name: str) -> Recipe:
    """A recipe by its name."""
    if name not in RECIPES:
        raise unknown("recipe", name, RECIPES)
    return RECIPES[name]()
