// A photograph: made small enough to send, and shown beside what was read off it.

import { postFile } from "./api.js";

const DOUBT = 0.9; // certainty below which a cell is marked
const find = (id) => document.getElementById(id);

// Cameras take more pixels than reading needs, and more bytes than the server accepts.
async function shrunk(file) {
  const image = await createImageBitmap(file), scale = Math.min(1, 2000 / Math.max(image.width, image.height));
  const canvas = new OffscreenCanvas(Math.round(scale * image.width), Math.round(scale * image.height));
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas.convertToBlob({ type: "image/jpeg", quality: 0.92 });
}

export async function readPhoto(file) {
  return postFile("/api/read-photo", await shrunk(file));
}

// The board as it was photographed, for comparing; `null` takes it away.
export function showPhoto(read) {
  find("photograph").hidden = !read;
  if (!read) return;
  find("photographed").src = read.board;
  const changes = read.changes.length ? ` Because of the rules, taken otherwise than first read: ${read.changes.join("; ")}.` : "";
  find("taken").textContent = `The board in the photograph.${changes}`;
}

export function doubtful(read, cells) {
  cells.forEach((cell, place) => cell.classList.toggle("unsure", read.certainty[place] < DOUBT));
  return cells.filter((cell) => cell.classList.contains("unsure")).length;
}
