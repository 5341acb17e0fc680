// The page: one problem at a time, its board, and what the server says about it.

import { get, post, stream } from "./api.js";
import { AttentionView } from "./attention.js";
import { make } from "./dom.js";
import { GraphBoard } from "./graph.js";
import { GridBoard } from "./grid.js";
import { help, keypad } from "./keys.js";
import { NonogramBoard } from "./nonogram.js";
import { doubtful, readPhoto, showPhoto } from "./photo.js";
import { PlainBoard } from "./plain.js";
import { Player } from "./player.js";
import { startTheme } from "./theme.js";
import { onTheWay, verdict } from "./verdict.js";

const BOARDS = { board: GridBoard, images: GridBoard, nonogram: NonogramBoard, graph: GraphBoard, text: PlainBoard };
const find = (id) => document.getElementById(id);
const attention = new AttentionView();
const player = new Player(showFrame);
let models = [], model = null, board = null, result = null, running = null, checking = 0, able = {};
let seed = new URLSearchParams(location.search).get("seed");

function say(kind, title, more = "", buttons = []) {
  const status = find("status"), said = [kind, title, more, buttons.length].join("|");
  if (status.dataset.said === said) return; // nobody wants to hear it twice
  status.dataset.said = said;
  const mark = { good: "✓", warn: "!", bad: "✕", busy: "…" }[kind] || "";
  status.className = `status ${title ? "on" : ""} ${kind}`;
  status.replaceChildren(...(title ? [make("span", { "aria-hidden": "true" }, mark), make("b", {}, title)] : []));
  if (title && more) status.append(make("small", {}, more));
  if (buttons.length) status.append(make("div", { class: "actions" }, ...buttons));
}

function pretty(name) {
  return (name[0].toUpperCase() + name.slice(1)).replaceAll("-", " ").replace(/(\d+)x(\d+)/, "$1×$2").replace(/^Mnist/, "MNIST");
}

async function choose(name) {
  stop();
  model = models.find((one) => one.name === name) || models[0];
  find("model").value = model.name;
  const size = (model.layout.side ? [model.layout.side, model.layout.side] : model.layout.shape).join("×");
  find("about").textContent = model.description.replace(/an n x n/, `${/^(8|11|18)/.test(size) ? "an" : "a"} ${size}`);
  find("format").textContent = `Text: ${model.text_format}`;
  find("steps").value = model.steps;
  board = new BOARDS[model.layout.kind](find("board"), model.layout, { edited, look });
  keypad(board);
  help(board);
  find("exact-row").hidden = !(able.exact && model.exact);
  showPhoto(null);
  say("", "");
  await board.ready;
  await generate();
}

function stop() {
  running?.abort();
  running = null;
  result = null;
  player.reset();
  attention.hide(board);
  editing(true);
  find("solve").disabled = false;
}

function editing(yes) {
  find("edit").hidden = yes;
  find("clear").hidden = !yes;
  find("keypad").hidden = !yes;
}

function edited() {
  stop();
  say("", "");
  check(board.puzzle());
}

// Conflicts are marked as the puzzle changes; the checker is the server's.
async function check(text) {
  const turn = ++checking;
  if (document.activeElement !== find("text")) find("text").value = text.startsWith("data:") ? "" : text;
  if (board.empty()) return;
  const found = await post("/api/check", { model: model.name, puzzle: text });
  if (turn !== checking || board.frame) return;
  board.marks(found);
  if (found.error) say("bad", found.readable ? "Conflict" : "Not a puzzle yet", found.error[0].toUpperCase() + found.error.slice(1));
  else say("", "");
}

async function generate() {
  stop();
  showPhoto(null);
  try {
    const wanted = { model: model.name, ...(seed && { seed }) };
    seed = null; // an address may name the first puzzle: /?seed=7#sudoku
    await put((await get("/api/generate", wanted)).puzzle);
  } catch (error) {
    say("warn", "No puzzle to offer", error.message);
  }
}

// A puzzle in text becomes the board, if it can be read.
async function put(text) {
  stop();
  const found = await post("/api/check", { model: model.name, puzzle: text });
  if (!found.readable) return say("bad", "Not a puzzle yet", found.error);
  await board.read(text, found);
  say("", "");
  return check(board.puzzle());
}

// Solve the puzzle; with `more`, go on from an answer that is not verified: { search } or { exact }.
async function solve(more = null) {
  if (!more) stop();
  editing(false);
  board.looked = undefined;
  running = new AbortController();
  const { signal } = running;
  find("solve").disabled = true;
  say("busy", more ? (more.search ? "Searching …" : "The exact solver is at work …") : "Thinking …");
  const search = Math.min(Number(find("search").value) || 0, able.search);
  const body = { model: model.name, puzzle: board.puzzle(), explain: true, steps: Number(find("steps").value) || model.steps, search, exact: find("exact").checked && model.exact, ...more };
  try {
    await stream("/api/solve/stream", body, (name, data) => {
      if (signal.aborted) return;
      if (name === "step" && !more) player.add(data);
      if (name === "search") searching(data);
      if (name === "answer") result = { ...data, searched: body.search > 0 };
      if (name === "error") throw new Error(data.detail);
    }, signal);
    if (["search", "exact"].includes(result.method) && result.values) player.found(result.values, result.method);
    player.finish();
  } catch (error) {
    if (!signal.aborted) say("bad", "Not solved", error.message);
    if (!signal.aborted && !player.frames.length) editing(true);
  }
  if (!signal.aborted) find("solve").disabled = false;
}

function searching({ steps, values }) {
  if (player.playing) return;
  board.show({ values, sure: values.map(() => 0.5) });
  say("busy", "Searching …", `${steps.toLocaleString("en")} recurrences so far.`);
}

function showFrame(frame, last) {
  const over = last && result;
  board.show(frame, over ? result.wrong : [], result ? result.read : null, over ? result.broken : []);
  if (over) say(...verdict(result), further());
  else if (!player.complete || player.playing) say("busy", "Thinking …");
  else say(...onTheWay(frame, player.frames.at(-1)));
  if (board.looked !== undefined && !player.playing) look(board.looked);
}

// What else can be tried where the recurrences end without a verified answer.
function further() {
  if (result.verified || result.method === "none" || !model.checked) return [];
  const offer = (text, more) => {
    const button = make("button", { type: "button" }, text);
    button.addEventListener("click", () => { find("status").focus(); solve(more); });
    return button;
  };
  return [
    ...(able.search && !result.searched ? [offer("Search further", { search: able.search })] : []),
    ...(able.exact && model.exact ? [offer("Ask the exact solver", { exact: true })] : []),
  ];
}

// A cell is looked at: while an answer is shown, this is the attention view.
function look(place) {
  board.looked = place;
  if (!result || !player.frame || player.playing || model.layout.count < 2) return;
  attention.look(board, { model: model.name, puzzle: result.puzzle, step: player.frame.step, cell: place });
}

async function photograph(file) {
  if (!able.photos) return say("warn", "This server cannot read photographs", "Type the puzzle, or paste it as text.");
  say("busy", "Reading the photograph …");
  try {
    const read = await readPhoto(file);
    if (read.model !== model.name) await choose(read.model);
    await put(read.puzzle);
    showPhoto(read);
    const marked = doubtful(read, board.cells) ? " Marked cells are in doubt." : "";
    return say("warn", "Look it over", `This is what was read.${marked} Mend it where it is wrong, then solve.`);
  } catch (error) {
    return say("bad", "Not read", error.message);
  }
}

function listen() {
  find("model").addEventListener("change", (event) => { location.hash = event.target.value; });
  addEventListener("hashchange", () => choose(location.hash.slice(1)));
  find("solve").addEventListener("click", () => solve());
  find("generate").addEventListener("click", generate);
  find("edit").addEventListener("click", () => { stop(); board.show(null); edited(); });
  find("clear").addEventListener("click", () => { stop(); board.clear(); board.marks({ wrong: [] }); showPhoto(null); find("text").value = ""; say("", ""); });
  find("text").addEventListener("input", (event) => event.target.value.trim() && put(event.target.value.trim()));
  find("photo").addEventListener("click", () => (able.photos ? find("file").click() : photograph(null)));
  find("file").addEventListener("change", ({ target }) => {
    if (target.files[0]) photograph(target.files[0]);
    target.value = ""; // the same file may be chosen again
  });
  find("unlook").addEventListener("click", () => { attention.hide(board); if (board) board.looked = undefined; });
  addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); solve(); }
    if (event.key === "Escape" && !find("pad").open) find("unlook").click();
  });
  addEventListener("paste", (event) => {
    if (["TEXTAREA", "INPUT"].includes(event.target.tagName)) return;
    const [file] = event.clipboardData.files, text = event.clipboardData.getData("text").trim();
    if (file) photograph(file);
    else if (text) put(text);
  });
  addEventListener("dragover", (event) => { event.preventDefault(); find("drop").hidden = false; });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) find("drop").hidden = true; });
  addEventListener("drop", (event) => {
    event.preventDefault();
    find("drop").hidden = true;
    if (event.dataTransfer.files[0]) photograph(event.dataTransfer.files[0]);
  });
}

async function start() {
  startTheme(find("theme"));
  listen();
  const [list, health] = await Promise.all([get("/api/models"), get("/api/health")]);
  models = list;
  able = health;
  find("search-row").hidden = !able.search;
  find("search").max = able.search;
  find("model").replaceChildren(...models.map((one) => make("option", { value: one.name }, pretty(one.name))));
  const wanted = location.hash.slice(1);
  await choose(models.some((one) => one.name === wanted) ? wanted : "sudoku");
  document.documentElement.dataset.ready = "yes";
}

start().catch((error) => say("bad", "The server does not answer", error.message));
