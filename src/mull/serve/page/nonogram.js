// A nonogram: hints around a square. A click on the hints of a line edits them.

import { heats, make, percent, roam } from "./dom.js";

export class NonogramBoard {
  constructor(root, layout, hooks) {
    Object.assign(this, { root, layout, hooks, side: layout.side });
    this.hints = Array.from({ length: 2 * this.side }, () => []); // columns, then rows, as the text has them
    this.frame = null;
    this.ready = Promise.resolve();
    this.build();
  }

  build() {
    const { side } = this;
    const grid = make("div", { class: "nonogram", role: "grid", "aria-label": "Puzzle" });
    grid.style.setProperty("--side", side);
    this.lines = [];
    const line = (place, kind) => {
      const button = make("button", { type: "button", class: `line ${kind}` });
      button.addEventListener("click", () => this.edit(place));
      this.lines[place] = button;
      return button;
    };
    grid.append(make("span"));
    for (let column = 0; column < side; column++) grid.append(line(column, "column"));
    this.cells = [];
    for (let row = 0; row < side; row++) {
      grid.append(line(side + row, "rowwise"));
      for (let column = 0; column < side; column++) {
        const cell = make("button", { type: "button", class: "pixel", role: "gridcell" }, make("i"));
        const sides = { "first-column": !column, "first-row": !row, "last-column": column === side - 1, "last-row": row === side - 1,
          "fifth-column": side >= 10 && column % 5 === 4 && column < side - 1, "fifth-row": side >= 10 && row % 5 === 4 && row < side - 1 };
        for (const [name, yes] of Object.entries(sides)) cell.classList.toggle(name, yes);
        cell.addEventListener("click", () => this.hooks.look(row * side + column));
        this.cells.push(cell);
        grid.append(cell);
      }
    }
    this.input = make("input", { "aria-label": "Hints of the line", inputmode: "decimal", autocomplete: "off" });
    this.label = make("span");
    this.editor = make("div", { class: "line-editor" }, this.label, this.input);
    this.editor.hidden = true;
    this.input.addEventListener("input", () => this.typed());
    this.input.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && !event.ctrlKey) this.edit((this.editing + 1) % (2 * side));
      if (event.key === "Escape") { this.editor.hidden = true; this.lines[this.editing].focus(); }
    });
    this.root.replaceChildren(grid, this.editor);
    roam(this.cells, side, side, (place) => { this.chosen = place; this.hooks.look(place); });
    this.show();
  }

  keys() { return []; }

  how() { return "Click the hints of a line to change them."; }

  help() { return [["Enter", "next line"]]; }

  title(place) {
    return place < this.side ? `Column ${place + 1}` : `Row ${place - this.side + 1}`;
  }

  edit(place) {
    this.editing = place;
    this.label.textContent = this.title(place);
    this.input.value = this.hints[place].join(" ");
    this.editor.hidden = false;
    this.input.focus();
    this.input.select();
  }

  typed() {
    this.hints[this.editing] = this.input.value.split(/[^0-9]+/).filter(Boolean).map(Number).filter(Boolean);
    this.frame = null;
    this.hooks.edited();
    this.show();
  }

  puzzle() { return this.hints.map((line) => line.join(".") || "0").join("/"); }

  empty() { return this.hints.every((line) => !line.length); }

  async read(text) {
    this.hints = text.trim().split("/").map((line) => line.split(".").map(Number).filter(Boolean));
    this.frame = null;
    this.show();
  }

  clear() {
    this.hints = this.hints.map(() => []);
    this.frame = null;
    this.show();
  }

  // An error names the line; broken rules are those of whole lines.
  marks(check, broken = []) {
    const named = /^(row|column) (\d+)/.exec(check.error || "");
    const at = named && (named[1] === "column" ? 0 : this.side) + Number(named[2]) - 1;
    const wrong = new Set(broken.map(({ cells }) => (cells[1] - cells[0] === 1 ? this.side + Math.floor(cells[0] / this.side) : cells[0])));
    this.lines.forEach((line, place) => line.classList.toggle("wrong", place === at || wrong.has(place)));
  }

  show(frame = this.frame, wrong = [], read = null, broken = []) {
    this.frame = frame;
    this.lines.forEach((line, place) => {
      const numbers = this.hints[place];
      line.replaceChildren(...(numbers.length ? numbers : ["0"]).map((number) => make("span", {}, String(number))));
      line.classList.toggle("empty", !numbers.length);
      line.setAttribute("aria-label", `${this.title(place)}: ${numbers.join(" ") || "no hints"}`);
    });
    this.cells.forEach((cell, place) => {
      const sure = frame ? frame.sure[place] : 1; // however unsure, black and white can be told apart
      const black = frame && frame.values[place] === 1 ? 0.3 + 0.7 * sure : 0.6 * (1 - sure);
      cell.style.setProperty("--black", black.toFixed(3));
      const said = frame ? `${frame.values[place] === 1 ? "black" : "white"}, ${percent(frame.sure[place])} sure` : "open";
      cell.setAttribute("aria-label", `row ${Math.floor(place / this.side) + 1}, column ${(place % this.side) + 1}: ${said}`);
    });
    this.marks({}, broken);
  }

  where(place) { return `row ${Math.floor(place / this.side) + 1}, column ${(place % this.side) + 1}`; }

  heat(weights, chosen) {
    const hot = weights && heats(weights);
    this.cells.forEach((cell, place) => {
      cell.style.setProperty("--hot", hot ? hot[place].toFixed(3) : 0);
      cell.classList.toggle("chosen", place === chosen);
    });
  }

  miniature(weights, chosen) {
    const svg = make("svg:svg", { viewBox: `-.5 -.5 ${this.side + 1} ${this.side + 1}`, "aria-hidden": "true" });
    svg.append(make("svg:rect", { width: this.side, height: this.side, fill: "none", stroke: "var(--line)", "stroke-width": 0.15 }));
    heats(weights).forEach((hot, place) => {
      const x = place % this.side, y = Math.floor(place / this.side);
      if (hot > 0.02) svg.append(make("svg:rect", { x, y, width: 1, height: 1, fill: `rgb(var(--heat) / ${hot.toFixed(3)})` }));
      if (place === chosen) svg.append(make("svg:rect", { x, y, width: 1, height: 1, fill: "none", stroke: "var(--focus)", "stroke-width": this.side / 28 }));
    });
    return svg;
  }
}
