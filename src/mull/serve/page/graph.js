// A grid graph: a click on a node makes it an end, a click on an edge removes it or brings it back.

import { heats, make, percent } from "./dom.js";

export class GraphBoard {
  constructor(root, layout, hooks) {
    Object.assign(this, { root, layout, hooks, side: layout.side, nodes: layout.side ** 2 });
    this.ends = [0, this.nodes - 1];
    this.removed = new Set();
    this.frame = null;
    this.ready = Promise.resolve();
    this.build();
  }

  at(node) { return [node % this.side, Math.floor(node / this.side)]; }

  build() {
    const svg = make("svg:svg", { class: "graph", viewBox: `-.6 -.6 ${this.side + 0.2} ${this.side + 0.2}`, role: "group", "aria-label": "Puzzle" });
    this.parts = [];
    this.layout.ends.forEach(([one, other], edge) => {
      const [x1, y1] = this.at(one), [x2, y2] = this.at(other), line = (name) => make("svg:line", { x1, y1, x2, y2, class: name });
      const ring = make("svg:circle", { cx: (x1 + x2) / 2, cy: (y1 + y2) / 2, r: 0.24, class: "ring" });
      this.add(svg, this.nodes + edge, "edge", ...["glow", "wire", "path", "hit"].map(line), ring);
    });
    for (let node = 0; node < this.nodes; node++) {
      const [cx, cy] = this.at(node), disc = (name, r) => make("svg:circle", { cx, cy, r, class: name });
      this.add(svg, node, "node", disc("glow", 0.32), disc("face", 0.19), disc("path", 0.19), disc("ring", 0.27), make("svg:text", { x: cx, y: cy }, String(node)));
    }
    this.root.replaceChildren(svg);
    this.show();
  }

  add(svg, place, kind, ...shapes) {
    const group = make("svg:g", { class: kind, role: "button", tabindex: place ? -1 : 0 }, ...shapes);
    group.addEventListener("click", () => { group.focus(); this.touch(place); });
    group.addEventListener("focus", () => {
      this.parts.forEach((other) => other.setAttribute("tabindex", other === group ? 0 : -1));
      this.chosen = place;
      this.hooks.look(place);
    });
    group.addEventListener("keydown", (event) => this.key(event, place));
    this.parts[place] = group;
    svg.append(group);
  }

  // Arrows go from a node over the edge to the next node.
  key(event, place) {
    const move = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if ((event.key === "Enter" && !event.ctrlKey) || event.key === " ") this.touch(place);
    else if (move) {
      const [x, y] = this.middle(place);
      const next = this.parts.findIndex((_, other) => {
        const [a, b] = this.middle(other);
        return a === x + move[0] / 2 && b === y + move[1] / 2;
      });
      if (next >= 0) this.parts[next].focus();
    } else return;
    event.preventDefault();
  }

  middle(place) {
    if (place < this.nodes) return this.at(place);
    const [[a, b], [c, d]] = this.layout.ends[place - this.nodes].map((node) => this.at(node));
    return [(a + c) / 2, (b + d) / 2];
  }

  touch(place) {
    if (this.frame) return this.hooks.look(place);
    if (place < this.nodes) {
      this.ends = this.ends.includes(place) ? this.ends.filter((node) => node !== place) : [...this.ends.slice(-1), place];
    } else if (!this.removed.delete(place - this.nodes)) this.removed.add(place - this.nodes);
    this.hooks.edited();
    return this.show();
  }

  keys() { return []; }

  how() { return "Click a node to make it an end, an edge to take it out."; }

  help() { return [["Enter", "an end, or remove"]]; }

  where(place) {
    return place < this.nodes ? `node ${place}` : `edge ${this.layout.ends[place - this.nodes].join("–")}`;
  }

  puzzle() {
    const sorted = (numbers) => [...numbers].sort((a, b) => a - b).join("-");
    return `${this.side}x${this.side} ends=${sorted(this.ends)}${this.removed.size ? ` removed=${sorted(this.removed)}` : ""}`;
  }

  empty() { return !this.ends.length && !this.removed.size; }

  async read(text) {
    const numbers = (name) => (new RegExp(`${name}=([\\d-]*)`).exec(text)?.[1] || "").split("-").filter(Boolean).map(Number);
    this.ends = numbers("ends");
    this.removed = new Set(numbers("removed"));
    this.frame = null;
    this.show();
  }

  clear() {
    this.ends = [];
    this.removed.clear();
    this.frame = null;
    this.show();
  }

  marks() {}

  show(frame = this.frame, wrong = []) {
    this.frame = frame;
    const bad = new Set(wrong);
    this.parts.forEach((group, place) => {
      const on = frame && frame.values[place] === 1, sure = on ? frame.sure[place] : 0;
      const end = this.ends.includes(place), removed = this.removed.has(place - this.nodes);
      group.style.setProperty("--sure", sure);
      group.classList.toggle("on", sure > 0.5);
      group.classList.toggle("end", end);
      group.classList.toggle("removed", removed);
      group.classList.toggle("wrong", bad.has(place) || Boolean(on && removed));
      const said = [end && "end", removed && "removed", on && `in the path, ${percent(sure)} sure`].filter(Boolean).join(", ");
      group.setAttribute("aria-label", `${this.where(place)}${said ? `: ${said}` : ""}`);
    });
  }

  heat(weights, chosen) {
    const hot = weights && heats(weights);
    this.parts.forEach((group, place) => {
      group.style.setProperty("--hot", hot ? hot[place].toFixed(3) : 0);
      group.classList.toggle("chosen", place === chosen);
    });
  }

  miniature(weights, chosen) {
    const svg = make("svg:svg", { viewBox: `-.6 -.6 ${this.side + 0.2} ${this.side + 0.2}`, "aria-hidden": "true" });
    const hot = heats(weights), colour = (place) => `rgb(var(--heat) / ${hot[place].toFixed(3)})`;
    this.layout.ends.forEach(([one, other], edge) => {
      const [x1, y1] = this.at(one), [x2, y2] = this.at(other), line = { x1, y1, x2, y2 };
      svg.append(make("svg:line", { ...line, stroke: "var(--line)", "stroke-width": 0.06 }));
      svg.append(make("svg:line", { ...line, stroke: colour(this.nodes + edge), "stroke-width": 0.22, "stroke-linecap": "round" }));
    });
    for (let node = 0; node < this.nodes; node++) {
      const [cx, cy] = this.at(node);
      svg.append(make("svg:circle", { cx, cy, r: 0.22, fill: colour(node), stroke: "var(--line)", "stroke-width": 0.05 }));
    }
    const [cx, cy] = this.middle(chosen);
    svg.append(make("svg:circle", { cx, cy, r: 0.32, fill: "none", stroke: "var(--focus)", "stroke-width": 0.1 }));
    return svg;
  }
}
