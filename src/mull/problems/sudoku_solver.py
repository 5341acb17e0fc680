"""Exact search on Sudoku boards, compiled with numba: solve a board, count its solutions.

A cell's candidates are the bits of one integer, and the bit `FIXED` marks a cell whose value its peers have been told.
Propagation runs naked singles (a cell with one candidate) and hidden singles (a value with one cell in a row, column
or box) to a fixed point; search branches on a cell with the fewest candidates.

Import this module only where it is needed: numba is not part of the base install and takes a while to start.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mull.constraints import IntArray
from mull.problems.compiled import draw, jit

FIXED = 1 << 30


@lru_cache
def tables(box: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The peers of each cell (V, P), and the cells of each row, column and box (3 * side, side)."""
    side = box * box
    cells = np.arange(side * side).reshape(side, side)
    boxes = cells.reshape(box, box, box, box).swapaxes(1, 2).reshape(side, side)
    units = np.concatenate([cells, cells.T, boxes])
    peers = [np.setdiff1d(np.unique(units[(units == cell).any(axis=1)]), [cell]) for cell in range(side * side)]
    return np.stack(peers).astype(np.int32), units.astype(np.int32)


@jit
def _tell_peers(cand: IntArray, queue: IntArray, length: int, peers: IntArray) -> bool:
    """Take the value of every queued cell from its peers, and theirs in turn; False on a contradiction."""
    while length:
        length -= 1
        cell = queue[length]
        bit = cand[cell]
        if bit & FIXED:
            continue
        cand[cell] = bit | FIXED
        for k in range(peers.shape[1]):
            peer = peers[cell, k]
            c = cand[peer]
            if c & bit:
                c ^= bit
                if c == 0 or c & FIXED:
                    return False
                cand[peer] = c
                if c & (c - 1) == 0:
                    queue[length] = peer
                    length += 1
    return True


@jit
def propagate(cand: IntArray, queue: IntArray, length: int, peers: IntArray, units: IntArray) -> bool:
    """Naked and hidden singles to a fixed point, from the queued cells with one candidate; False on a contradiction."""
    full = (1 << units.shape[1]) - 1
    if not _tell_peers(cand, queue, length, peers):
        return False
    unit, quiet = 0, 0
    while quiet < len(units):  # one whole round without a change
        once, twice, known = 0, 0, 0
        for k in range(units.shape[1]):
            c = cand[units[unit, k]]
            if c & FIXED:
                known |= c
            twice |= once & c
            once |= c
        if once & full != full:
            return False
        hidden = once & ~twice & ~known & full
        if hidden:
            length = 0
            for k in range(units.shape[1]):
                cell = units[unit, k]
                h = cand[cell] & hidden
                if h:
                    if h & (h - 1):
                        return False
                    cand[cell] = h
                    queue[length] = cell
                    length += 1
            if not _tell_peers(cand, queue, length, peers):
                return False
            quiet = 0
        else:
            quiet += 1
        unit = unit + 1 if unit + 1 < len(units) else 0
    return True


@jit
def start(tokens: IntArray, cand: IntArray, queue: IntArray) -> int:
    """Candidates of a board before propagation; the number of givens now in the queue."""
    side = int(np.sqrt(len(tokens)))
    length = 0
    for cell in range(len(tokens)):
        if tokens[cell]:
            cand[cell] = 1 << (tokens[cell] - 1)
            queue[length] = cell
            length += 1
        else:
            cand[cell] = (1 << side) - 1
    return length


@jit
def _branch_cell(cand: IntArray, state: NDArray[np.uint64], random: bool) -> int:
    """An open cell with the fewest candidates (the first, or a random one of them); -1 if no cell is open."""
    best, fewest, ties = -1, 1 << 30, 0
    for cell in range(len(cand)):
        c = cand[cell]
        if c & FIXED:
            continue
        count = 0
        while c and count <= fewest:
            c &= c - 1
            count += 1
        if count < fewest:
            best, fewest, ties = cell, count, 1
            if count == 2 and not random:
                return best
        elif random and count == fewest:
            ties += 1
            if draw(state, ties) == 0:
                best = cell
    return best


@jit
def _branch_value(c: int, likely: int, state: NDArray[np.uint64], random: bool) -> int:
    """One of the candidates, as a bit: the likely one if it is among them, else the lowest; or a random one."""
    if c & likely:
        return likely
    if random:
        count, rest = 0, c
        while rest:
            rest &= rest - 1
            count += 1
        for _ in range(draw(state, count)):
            c &= c - 1
    return c & -c


@jit
def search(
    stack: IntArray,
    queue: IntArray,
    out: IntArray,
    limit: int,
    nodes: int,
    likely: IntArray,
    state: NDArray[np.uint64],
    random: bool,
    peers: IntArray,
    units: IntArray,
) -> int:
    """Solutions of the propagated board stack[0], at most `limit`; -1 if more than `nodes` branches are needed.

    `likely` has the value to try first in each cell, as a bit, or 0. The last solution found is left in `out`, as
    values that start at 0.
    """
    depth, found = 0, 0
    cells = np.empty(len(stack), np.int64)
    while True:
        cand = stack[depth]
        cell = _branch_cell(cand, state, random)
        if cell < 0:
            found += 1
            for i in range(len(out)):
                value, c = 0, cand[i] & ~FIXED
                while c > 1:
                    c >>= 1
                    value += 1
                out[i] = value
            if found == limit:
                return found
        else:
            if nodes == 0:
                return -1
            nodes -= 1
            bit = _branch_value(cand[cell], likely[cell], state, random)
            stack[depth + 1] = cand
            cand[cell] ^= bit  # for when we come back
            cells[depth] = cell
            depth += 1
            stack[depth, cell] = bit
            queue[0] = cell
            if propagate(stack[depth], queue, 1, peers, units):
                continue
        while True:  # go back to the last branch whose other side is consistent
            if depth == 0:
                return found
            depth -= 1
            queue[0] = cells[depth]
            c = stack[depth, cells[depth]]
            if propagate(stack[depth], queue, 1 if c & (c - 1) == 0 else 0, peers, units):
                break


@jit
def count(
    tokens: IntArray, limit: int, nodes: int, stack: IntArray, out: IntArray, peers: IntArray, units: IntArray
) -> int:
    """Solutions of a board, at most `limit`; -1 if undecided after `nodes` branches."""
    queue = np.empty(len(tokens) + 1, np.int32)
    length = start(tokens, stack[0], queue)
    if not propagate(stack[0], queue, length, peers, units):
        return 0
    nothing = np.zeros(len(tokens), np.int64)
    return search(stack, queue, out, limit, nodes, nothing, np.zeros(1, np.uint64), False, peers, units)


def workspace(box: int) -> tuple[NDArray[np.int32], IntArray]:
    """Room for a search: candidates by depth (V + 1, V), and a solution (V,)."""
    cells = box**4
    return np.empty((cells + 1, cells), np.int32), np.zeros(cells, np.int64)


def count_solutions(box: int, tokens: NDArray[Any], limit: int = 2) -> int:
    """How many solutions a board has, counted up to `limit`."""
    stack, out = workspace(box)
    return int(count(tokens.astype(np.int64), limit, 1 << 60, stack, out, *tables(box)))


def solve(box: int, tokens: NDArray[Any]) -> IntArray | None:
    """A solution (values that start at 0), or None if there is none."""
    stack, out = workspace(box)
    found = count(tokens.astype(np.int64), 1, 1 << 60, stack, out, *tables(box))
    return out if found else None
