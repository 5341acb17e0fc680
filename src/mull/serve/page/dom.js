// Making elements, moving through grids by keyboard, and heat.

export function make(tag, attributes = {}, ...children) {
  const node = tag.startsWith("svg:")
    ? document.createElementNS("http://www.w3.org/2000/svg", tag.slice(4))
    : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

// Arrow keys, Home and End among the cells of a board; one of them at a time can be reached by Tab.
export function roam(cells, rows, columns, choose) {
  cells.forEach((cell, place) => {
    cell.tabIndex = place ? -1 : 0;
    cell.addEventListener("focus", () => {
      cells.forEach((other) => { other.tabIndex = other === cell ? 0 : -1; });
      choose(place);
    });
    cell.addEventListener("keydown", (event) => {
      const row = Math.floor(place / columns), column = place % columns;
      let next = null;
      if (MOVES[event.key]) {
        const [down, right] = MOVES[event.key];
        next = ((row + down + rows) % rows) * columns + ((column + right + columns) % columns);
      } else if (event.key === "Home") next = row * columns;
      else if (event.key === "End") next = (row + 1) * columns - 1;
      if (next === null) return;
      event.preventDefault();
      cells[next].focus();
    });
  });
}

// How strongly to colour each of some weights: the largest gets the most, small ones can still be seen.
export function heats(weights) {
  const most = Math.max(...weights, 1e-9);
  return weights.map((weight) => 0.8 * (weight / most) ** 0.7);
}

export const percent = (share) => `${Math.round(100 * share)} %`;
