// The page: one problem at a time, its board, and what the server says about it.

import { get, post, postFile, stream } from "./api.js";
import { AttentionView } from "./attention.js";
import { make } from "./dom.js";
import { GraphBoard } from "./graph.js";
import { GridBoard } from "./grid.js";
import { NonogramBoard } from "./nonogram.js";
import { PlainBoard } from "./plain.js";
import { Player } from "./player.js";
import { startTheme } from "./theme.js";

const BOARDS = { board: GridBoard, images: GridBoard, nonogram: NonogramBoard, graph: GraphBoard, text: PlainBoard };
const find = (id) => document.getElementById(id);
const attention = new AttentionView();
const player = new Player(showFrame);
let models = [], model = null, board = null, result = null, running = null, checking = 0, photos = false;
let seed = new URLSearchParams(location.search).get("seed");

function say(kind, title, more = "") {
  const mark = { good: "✓", warn: "!", bad: "✕", busy: "…" }[kind] || "";
  find("status").className = `status ${title ? "on" : ""} ${kind}`;
  find("status").replaceChildren(...(title ? [make("span", { "aria-hidden": "true" }, mark), make("b", {}, title)] : []));
  if (title && more) find("status").append(make("small", {}, more));
}

function pretty(name) {
  return (name[0].toUpperCase() + name.slice(1)).replaceAll("-", " ").replace(/(\d+)x(\d+)/, "$1×$2").replace(/^Mnist/, "MNIST");
}

async function choose(name) {
  stop();
  model = models.find((one) => one.name === name) || models[0];
  find("model").value = model.name;
  find("about").textContent = model.description;
  find("format").textContent = `Text: ${model.text_format}`;
  find("steps").value = model.steps;
  board = new BOARDS[model.layout.kind](find("board"), model.layout, { edited, look });
  keypad();
  say("", "");
  await board.ready;
  await generate();
}

function keypad() {
  const keys = board.keys().map((key) => {
    const button = make("button", { type: "button", tabindex: -1 }, key);
    button.addEventListener("click", () => press(key));
    return button;
  });
  if (keys.length) {
    const wipe = make("button", { type: "button", tabindex: -1, "aria-label": "Empty the cell" }, "⌫");
    wipe.addEventListener("click", () => press(null));
    keys.push(wipe);
  }
  find("keypad").style.setProperty("--keys", keys.length > 12 ? Math.ceil(keys.length / 2) : keys.length);
  find("keypad").replaceChildren(...keys);
}

function press(key) {
  const place = board.chosen ?? 0;
  board.type(place, key);
  board.cells[place].focus();
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
  if (found.error) say("bad", found.readable ? "Conflict" : "Not a puzzle yet", found.error);
  else say("", "");
}

async function generate() {
  stop();
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

async function solve() {
  stop();
  running = new AbortController();
  const { signal } = running;
  find("solve").disabled = true;
  say("busy", "Thinking …");
  const body = { model: model.name, puzzle: board.puzzle(), explain: true, steps: Number(find("steps").value) || model.steps, exact: find("exact").checked };
  try {
    await stream("/api/solve/stream", body, (name, data) => {
      if (signal.aborted) return;
      if (name === "step") player.add(data);
      if (name === "answer") result = data;
      if (name === "error") throw new Error(data.detail);
    }, signal);
    if (result.method === "exact" && result.values) player.add({ values: result.values, sure: result.values.map(() => 1), step: player.frames.length });
    editing(false);
    player.finish();
  } catch (error) {
    if (!signal.aborted) say("bad", "Not solved", error.message);
  }
  if (!signal.aborted) find("solve").disabled = false;
}

function showFrame(frame, last) {
  const over = last && result;
  board.show(frame, over ? result.wrong : [], result ? result.read : null, over ? result.broken : []);
  if (over) verdict();
  else if (!player.complete || player.playing) say("busy", "Thinking …");
  if (board.looked !== undefined && !player.playing) look(board.looked);
}

function verdict() {
  const count = `${result.steps} recurrence${result.steps === 1 ? "" : "s"}`;
  const note = (result.note || "").split(": try")[0];
  const time = `${result.ms < 10 ? result.ms.toFixed(1) : Math.round(result.ms)} ms of one core`;
  if (result.verified) {
    const how = result.method === "exact" ? "by exact search" : `in ${count}`;
    const read = result.read ? "The board keeps every rule, with the givens as they were read. " : "";
    say("good", `Verified ${how}`, `${read}${note ? `But it ${note}. ` : ""}${time}.`);
  } else if (result.method === "none") say("bad", "No solution", `The checker and a search agree: it ${note}.`);
  else {
    const rules = result.broken.slice(0, 3).map((one) => one.rule).join("; ");
    const missing = rules ? ` Missing: ${rules}${result.broken.length > 3 ? `, and ${result.broken.length - 3} more` : ""}.` : "";
    say("warn", "Not verified", `${note && (note.startsWith("no ") ? note[0].toUpperCase() + note.slice(1) : `It ${note}`)}.${missing}`);
  }
}

// A cell is looked at: while an answer is shown, this is the attention view.
function look(place) {
  board.looked = place;
  if (!result || !player.frame || player.playing) return;
  const step = Math.min(player.place, result.steps);
  attention.look(board, { model: model.name, puzzle: result.puzzle, step, cell: place });
}

// Cameras take more pixels than reading needs, and more bytes than the server accepts.
async function shrunk(file) {
  const image = await createImageBitmap(file), scale = Math.min(1, 2000 / Math.max(image.width, image.height));
  const canvas = new OffscreenCanvas(Math.round(scale * image.width), Math.round(scale * image.height));
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas.convertToBlob({ type: "image/jpeg", quality: 0.92 });
}

async function photograph(file) {
  if (!photos) return say("warn", "This server cannot read photographs", "Type the puzzle, or paste it as text.");
  say("busy", "Reading the photograph …");
  try {
    const read = await postFile("/api/read-photo", await shrunk(file));
    if (read.model !== model.name) await choose(read.model);
    await put(read.puzzle);
    board.cells.forEach((cell, place) => cell.classList.toggle("unsure", read.certainty[place] < 0.9));
    return say("warn", "Look it over", "This is what was read. Mend it where it is wrong, then solve.");
  } catch (error) {
    return say("bad", "Not read", error.message);
  }
}

function listen() {
  find("model").addEventListener("change", (event) => { location.hash = event.target.value; });
  addEventListener("hashchange", () => choose(location.hash.slice(1)));
  find("solve").addEventListener("click", solve);
  find("generate").addEventListener("click", generate);
  find("edit").addEventListener("click", () => { stop(); board.show(null); edited(); });
  find("clear").addEventListener("click", () => { stop(); board.clear(); board.marks({ wrong: [] }); find("text").value = ""; say("", ""); });
  find("text").addEventListener("input", (event) => event.target.value.trim() && put(event.target.value.trim()));
  find("photo").addEventListener("click", () => (photos ? find("file").click() : photograph(null)));
  find("file").addEventListener("change", (event) => event.target.files[0] && photograph(event.target.files[0]));
  addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); solve(); }
  });
  addEventListener("paste", (event) => {
    if (["TEXTAREA", "INPUT"].includes(event.target.tagName)) return;
    const text = event.clipboardData.getData("text").trim();
    if (text) put(text);
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
  photos = health.photos;
  find("exact-row").hidden = !health.exact;
  find("model").replaceChildren(...models.map((one) => make("option", { value: one.name }, pretty(one.name))));
  const wanted = location.hash.slice(1);
  await choose(models.some((one) => one.name === wanted) ? wanted : "sudoku");
  document.documentElement.dataset.ready = "yes";
}

start().catch((error) => say("bad", "The server does not answer", error.message));
