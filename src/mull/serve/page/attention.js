// What each head attends to, for the cell that is chosen: a small map for each, and heat over the board.

import { post } from "./api.js";
import { make } from "./dom.js";

export class AttentionView {
  constructor() {
    const find = (id) => document.getElementById(id);
    Object.assign(this, { card: find("attention"), text: find("attending"), list: find("heads"), head: -1, wanted: null });
  }

  hide(board) {
    clearTimeout(this.timer);
    this.wanted = null;
    this.card.hidden = true;
    if (board) board.heat(null, -1);
  }

  // Ask for a cell in a recurrence; of several wishes in a row only the last is sent.
  look(board, request) {
    const key = JSON.stringify(request);
    if (key === this.wanted) return;
    clearTimeout(this.timer);
    this.wanted = key;
    this.timer = setTimeout(async () => {
      try {
        const { heads } = await post("/api/attention", request);
        if (key === this.wanted) this.show(board, heads, request);
      } catch {
        if (key === this.wanted) this.hide(board);
      }
    }, 60);
  }

  show(board, heads, { cell, step }) {
    const mean = heads[0].map((_, place) => heads.reduce((sum, head) => sum + head[place], 0) / heads.length);
    if (this.head >= heads.length) this.head = -1;
    const choose = (head) => {
      this.head = head;
      board.heat(head < 0 ? mean : heads[head], cell);
      [...this.list.children].forEach((button, place) => button.setAttribute("aria-pressed", place - 1 === head));
    };
    const focused = [...this.list.children].indexOf(document.activeElement);
    this.list.replaceChildren(...[mean, ...heads].map((weights, place) => {
      const name = place ? `Head ${place}` : "All";
      const button = make("button", { type: "button", "aria-label": place ? name : "All heads" }, board.miniature(weights, cell), make("span", {}, name));
      button.addEventListener("click", () => choose(place - 1));
      return button;
    }));
    if (focused >= 0) this.list.children[focused]?.focus();
    this.text.textContent = `From ${board.where(cell)}, in recurrence ${step}.`;
    this.card.hidden = false;
    choose(this.head);
  }
}
