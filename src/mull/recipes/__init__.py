"""Recipes by name: a function that returns a whole `Recipe`, one for each row of each table."""

from __future__ import annotations

from collections.abc import Callable

from mull.errors import unknown
from mull.recipes import mnist_mapping, nonogram, shortest_path, sudoku, sudoku_16, visual_sudoku
from mull.recipes.own import own_recipe
from mull.recipes.recipe import Data, Recipe, Training, from_dict, override, to_dict

__all__ = ["RECIPES", "Data", "Recipe", "Training", "from_dict", "get_recipe", "override", "own_recipe", "to_dict"]

RECIPES: dict[str, Callable[[], Recipe]] = {
    "sudoku-4x4": sudoku.sudoku_4x4,
    "sudoku-4x4.no-labels": sudoku.sudoku_4x4_no_labels,
    "sudoku-satnet.paper": sudoku.sudoku_satnet_paper,
    "sudoku-satnet.best": sudoku.sudoku_satnet_best,
    "sudoku-rrn.paper": sudoku.sudoku_rrn_paper,
    "sudoku-rrn-9k.paper": sudoku.sudoku_rrn_9k_paper,
    "sudoku-rrn-9k.best": sudoku.sudoku_rrn_9k_best,
    "sudoku-rrn-9k-both.paper": sudoku.sudoku_rrn_9k_both_paper,
    "sudoku-rrn.best": sudoku.sudoku_rrn_best,
    "sudoku-rrn.no-labels": sudoku.sudoku_rrn_no_labels,
    "sudoku-rrn-semi.paper": sudoku.sudoku_rrn_semi_paper,
    "sudoku-rrn-semi.best": sudoku.sudoku_rrn_semi_best,
    "sudoku-extreme.best": sudoku.sudoku_extreme_best,
    "sudoku-16x16-simple.paper": sudoku_16.sudoku_16_simple_paper,
    "sudoku-16x16-medium.paper": sudoku_16.sudoku_16_medium_paper,
    "sudoku-16x16-simple-rounds.paper": sudoku_16.sudoku_16_simple_rounds_paper,
    "sudoku-16x16-medium-rounds.paper": sudoku_16.sudoku_16_medium_rounds_paper,
    "sudoku-16x16-regular-simple.paper": sudoku_16.sudoku_16_regular_simple_paper,
    "sudoku-16x16-regular-medium.paper": sudoku_16.sudoku_16_regular_medium_paper,
    "sudoku-16x16-singles.best": sudoku_16.sudoku_16_singles_best,
    "sudoku-16x16.best": sudoku_16.sudoku_16_best,
    "visual-sudoku-satnet.paper": visual_sudoku.visual_sudoku_satnet_paper,
    "visual-sudoku-satnet.best": visual_sudoku.visual_sudoku_satnet_best,
    "visual-sudoku-rrn.paper": visual_sudoku.visual_sudoku_rrn_paper,
    "visual-sudoku-rrn.best": visual_sudoku.visual_sudoku_rrn_best,
    "visual-sudoku-rrn-180k.paper": visual_sudoku.visual_sudoku_rrn_180k_paper,
    "visual-sudoku-rrn-180k.best": visual_sudoku.visual_sudoku_rrn_180k_best,
    "visual-sudoku-rrn-both.paper": visual_sudoku.visual_sudoku_rrn_both_paper,
    "visual-sudoku-rrn-both.best": visual_sudoku.visual_sudoku_rrn_both_best,
    "visual-sudoku-rrn-semi.paper": visual_sudoku.visual_sudoku_rrn_semi_paper,
    "visual-sudoku-rrn-semi.best": visual_sudoku.visual_sudoku_rrn_semi_best,
    "visual-sudoku-rrn-grounded.paper": visual_sudoku.visual_sudoku_rrn_grounded_paper,
    "visual-sudoku.best": visual_sudoku.visual_sudoku_best,
    "mnist-mapping.paper": mnist_mapping.mnist_mapping_paper,
    "nonogram-7.paper": nonogram.nonogram_7_paper,
    "nonogram-7.best": nonogram.nonogram_7_best,
    "nonogram-15.paper": nonogram.nonogram_15_paper,
    "nonogram-15.best": nonogram.nonogram_15_best,
    "shortest-path.paper": shortest_path.shortest_path_paper,
    "shortest-path.best": shortest_path.shortest_path_best,
    "shortest-path-12.paper": shortest_path.shortest_path_12_paper,
    "shortest-path-12.best": shortest_path.shortest_path_12_best,
}


def get_recipe(name: str) -> Recipe:
    """A recipe by its name."""
    if name not in RECIPES:
        raise unknown("recipe", name, RECIPES)
    return RECIPES[name]()
