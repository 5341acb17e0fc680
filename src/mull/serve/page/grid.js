// A board of cells with a value in each; or, for visual Sudoku, with an image in each.

import { heats, make, percent, roam } from "./dom.js";
import { drawDigit, imageCells, paint, wholeImage } from "./ink.js";

export class GridBoard {
  constructor(root, layout, hooks) {
    Object.assign(this, { root, layout, hooks });
    [this.rows, this.columns] = layout.shape;
    this.images = layout.kind === "images";
    this.given = Array(layout.count).fill(null);
    this.pictures = Array(layout.count).fill(null);
    this.frame = null;
    this.build();
    this.ready = this.images ? this.loadInk() : Promise.resolve();
  }

  build() {
    const { layout, rows, columns } = this;
    const right = new Set(layout.right), below = new Set(layout.below);
    const kind = layout.count === 1 ? " single" : columns > 9 ? " many" : "";
    const grid = make("div", { class: `grid${kind}`, role: "grid", "aria-label": "Puzzle" });
    grid.style.setProperty("--columns", columns);
    grid.style.setProperty("--rows", rows);
    this.cells = [];
    for (let row = 0; row < rows; row++) {
      const line = make("div", { role: "row" });
      for (let column = 0; column < columns; column++) {
        const place = row * columns + column;
        const cell = make("button", { type: "button", class: "cell", role: "gridcell" }, make("span"));
        if (this.images) cell.prepend(make("canvas", { width: layout.cell[1], height: layout.cell[0] }));
        cell.classList.toggle("wide", right.has(place));
        cell.classList.toggle("low", below.has(place));
        cell.classList.toggle("last", column === columns - 1);
        cell.classList.toggle("bottom", row === rows - 1);
        cell.addEventListener("keydown", (event) => this.key(event, place));
        if (this.images) cell.addEventListener("click", () => this.frame || this.draw(place));
        cell.addEventListener("click", () => this.hooks.look(place));
        this.cells.push(cell);
        line.append(cell);
      }
      grid.append(line);
    }
    this.root.replaceChildren(grid);
    roam(this.cells, rows, columns, (place) => { this.chosen = place; this.hooks.look(place); });
    this.show();
  }

  async loadInk() {
    this.ink = await Promise.all(this.layout.ink.map(async (address) => (await imageCells(address, [1, 1], this.layout.cell))[0]));
    this.cells.forEach((cell) => { cell.state = null; });
    this.show();
  }

  // The keys that a click on the pad below the board stands for.
  keys() {
    return this.images ? [...(this.layout.blank ? "" : "0"), ..."123456789"] : this.layout.values;
  }

  how() {
    return this.images ? "Click a cell to draw a digit into it." : "Type into the cells, or paste a puzzle.";
  }

  help() {
    const keys = this.keys(), range = `${keys[0]} … ${keys.at(-1)}`;
    return [[range, this.images ? "a drawn digit" : "type"], ...(this.images ? [["Enter", "draw"]] : []), ["⌫", "empty"]];
  }

  key(event, place) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (["Backspace", "Delete", "0", ".", " "].includes(event.key) && !(event.key === "0" && this.zero(place))) this.type(place, null);
    else if (this.images && event.key === "Enter") this.draw(place);
    else if (/^[0-9]$/.test(event.key)) this.type(place, event.key);
    else return;
    event.preventDefault();
  }

  // Whether 0 is a value here, or goes on with a number of two digits.
  zero(place) {
    const names = this.images ? this.keys() : this.layout.values;
    return names.includes("0") || names.includes(`${this.name(place)}0`);
  }

  name(place) {
    return this.given[place] === null ? "" : this.layout.values[this.given[place]];
  }

  type(place, key) {
    if (this.images) this.pictures[place] = key === null ? null : this.ink[Number(key)];
    else {
      const names = this.layout.values, longer = names.indexOf(`${this.name(place)}${key}`);
      const value = key === null ? null : longer >= 0 ? longer : names.indexOf(key);
      this.given[place] = value === -1 ? this.given[place] : value;
    }
    this.edited(place);
  }

  async draw(place) {
    const picture = await drawDigit(this.layout.cell, `Cell ${this.where(place)}`);
    if (picture === undefined) return;
    this.pictures[place] = picture;
    this.edited(place);
    this.cells[place].focus();
  }

  edited(place) {
    this.frame = null;
    this.cells[place].classList.remove("unsure");
    this.hooks.edited();
    this.show();
  }

  where(place) {
    return `row ${Math.floor(place / this.columns) + 1}, column ${(place % this.columns) + 1}`;
  }

  puzzle() {
    if (this.images) {
      const empty = this.layout.blank ? this.ink[0] : new Uint8ClampedArray(this.layout.cell[0] * this.layout.cell[1]);
      return wholeImage(this.pictures.map((one) => one || empty), [this.rows, this.columns], this.layout.cell);
    }
    const single = this.layout.values.every((name) => name.length === 1);
    return this.given.map((value) => (value === null ? "." : this.layout.values[value])).join(single ? "" : " ");
  }

  empty() {
    return (this.images ? this.pictures : this.given).every((one) => one === null);
  }

  async read(text, check) {
    if (this.images) this.pictures = await imageCells(text, this.layout.shape, this.layout.cell);
    else this.given = check.givens;
    this.fresh();
  }

  fresh() {
    this.frame = null;
    this.cells.forEach((cell) => cell.classList.remove("unsure"));
    this.show();
  }

  clear() {
    this.given.fill(null);
    this.pictures.fill(null);
    this.fresh();
  }

  marks(check) {
    const wrong = new Set(check.wrong);
    this.cells.forEach((cell, place) => {
      cell.classList.toggle("wrong", wrong.has(place));
      cell.state = null;
    });
  }

  // A recurrence: values and how sure they are; `read` are the givens that were read off images.
  show(frame = this.frame, wrong = [], read = null) {
    this.frame = frame;
    const bad = new Set(wrong);
    this.cells.forEach((cell, place) => {
      const given = this.images ? Boolean(frame && read && read[place] !== null) : this.given[place] !== null;
      const value = frame ? frame.values[place] : this.given[place];
      const sure = frame && !given ? frame.sure[place] : 1;
      const text = value === null || value === undefined ? "" : this.layout.values[value];
      const state = [text, given, sure.toFixed(2), bad.has(place), Boolean(frame)].join();
      if (cell.state === state && cell.picture === this.pictures[place]) return; // nothing to lay out again
      Object.assign(cell, { state, picture: this.pictures[place] });
      cell.lastChild.textContent = text;
      cell.style.setProperty("--sure", 0.18 + 0.82 * sure);
      cell.classList.toggle("given", given);
      cell.classList.toggle("long", text.length > 1);
      cell.classList.toggle("solved", this.images && Boolean(frame));
      cell.classList.toggle("wrong", bad.has(place));
      if (this.images) {
        cell.classList.toggle("blank", !this.pictures[place]);
        paint(cell.firstChild, this.pictures[place] || (this.layout.blank && this.ink ? this.ink[0] : null));
      }
      const said = text ? `${text}${given ? ", given" : frame ? `, ${percent(sure)} sure` : ""}` : this.pictures[place] ? "drawn" : "empty";
      cell.setAttribute("aria-label", `${this.where(place)}: ${said}`);
    });
  }

  heat(weights, chosen) {
    const hot = weights && heats(weights);
    this.root.classList.toggle("hot", Boolean(weights));
    this.cells.forEach((cell, place) => {
      cell.style.setProperty("--hot", hot ? hot[place].toFixed(3) : 0);
      cell.classList.toggle("chosen", place === chosen);
    });
  }

  miniature(weights, chosen) {
    const svg = make("svg:svg", { viewBox: `-.5 -.5 ${this.columns + 1} ${this.rows + 1}`, "aria-hidden": "true" });
    svg.append(make("svg:rect", { width: this.columns, height: this.rows, fill: "none", stroke: "var(--line)", "stroke-width": 0.15 }));
    heats(weights).forEach((hot, place) => {
      const x = place % this.columns, y = Math.floor(place / this.columns);
      if (hot > 0.02) svg.append(make("svg:rect", { x, y, width: 1, height: 1, fill: `rgb(var(--heat) / ${hot.toFixed(3)})` }));
      if (place === chosen) svg.append(make("svg:rect", { x, y, width: 1, height: 1, fill: "none", stroke: "var(--focus)", "stroke-width": this.columns / 28 }));
    });
    return svg;
  }
}
