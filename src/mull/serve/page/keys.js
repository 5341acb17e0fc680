// The pad of values below a board, and which keys do what on it.

import { make } from "./dom.js";

const find = (id) => document.getElementById(id);

export function keypad(board) {
  const press = (key) => {
    const place = board.chosen ?? 0;
    board.type(place, key);
    board.cells[place].focus();
  };
  const button = (text, key, attributes = {}) => {
    const made = make("button", { type: "button", tabindex: -1, ...attributes }, text);
    made.addEventListener("click", () => press(key));
    return made;
  };
  const keys = board.keys().map((key) => button(key, key));
  if (keys.length) keys.push(button("⌫", null, { "aria-label": "Empty the cell" }));
  const few = keys.length > 12 ? 6 : keys.length > 6 ? Math.ceil(keys.length / 2) : keys.length; // in a row of a phone
  find("keypad").style.setProperty("--keys", keys.length > 12 ? Math.ceil(keys.length / 2) : keys.length);
  find("keypad").style.setProperty("--few", few);
  find("keypad").replaceChildren(...keys);
}

// How a board of this kind is filled in, by hand and by keyboard.
export function help(board) {
  const named = (names) => names.split(" ").map((name) => (name === "…" ? "… " : make("kbd", {}, name)));
  const keys = [["← ↑ ↓ →", "move"], ...board.help(), ["Ctrl Enter", "solve"]];
  find("how").textContent = board.how();
  find("keys").replaceChildren(...keys.map(([names, what]) => make("span", {}, ...named(names), ` ${what}`)));
}
