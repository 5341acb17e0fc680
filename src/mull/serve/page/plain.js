// A problem without a board of its own: its text, and its answer as text.

import { make } from "./dom.js";

export class PlainBoard {
  constructor(root, layout, hooks) {
    Object.assign(this, { root, layout, hooks, text: "", frame: null, ready: Promise.resolve() });
    this.view = make("div", { class: "plain" });
    root.replaceChildren(this.view);
  }

  keys() { return []; }
  how() { return "Write the puzzle as text, below."; }
  help() { return []; }
  where(place) { return `variable ${place}`; }
  puzzle() { return this.text; }
  empty() { return !this.text; }
  async read(text) { this.text = text; this.frame = null; this.show(); }
  clear() { this.text = ""; this.frame = null; this.show(); }
  marks() {}
  show(frame = this.frame) { this.frame = frame; this.view.textContent = frame ? frame.values.join(" ") : this.text; }
  heat() {}
  miniature() { return make("span"); }
}
