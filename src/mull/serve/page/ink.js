// Images of cells: drawing them by hand, reading them from an image of the whole board, and putting that together.
// A cell's image is grey, light ink on a dark ground, row by row.

async function load(address) {
  const image = new Image();
  image.src = address;
  await image.decode();
  return image;
}

export async function imageCells(address, [rows, columns], [height, width]) {
  const canvas = new OffscreenCanvas(columns * width, rows * height);
  const context = canvas.getContext("2d", { willReadFrequently: true });
  context.drawImage(await load(address), 0, 0, canvas.width, canvas.height);
  const cells = [];
  for (let row = 0; row < rows; row++) for (let column = 0; column < columns; column++) {
    const { data } = context.getImageData(column * width, row * height, width, height);
    cells.push(Uint8ClampedArray.from({ length: width * height }, (_, place) => data[4 * place]));
  }
  return cells;
}

export function wholeImage(cells, [rows, columns], [height, width]) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [columns * width, rows * height];
  const context = canvas.getContext("2d");
  cells.forEach((grey, place) => {
    const image = context.createImageData(width, height);
    grey.forEach((level, pixel) => image.data.set([level, level, level, 255], 4 * pixel));
    context.putImageData(image, (place % columns) * width, Math.floor(place / columns) * height);
  });
  return canvas.toDataURL("image/png");
}

// Dark ink on nothing; the style sheet turns it light in the dark.
export function paint(canvas, grey) {
  const context = canvas.getContext("2d");
  const image = context.createImageData(canvas.width, canvas.height);
  if (grey) grey.forEach((level, pixel) => { image.data[4 * pixel + 3] = level; });
  context.putImageData(image, 0, 0);
}

// What was drawn, as MNIST has its digits: the ink fills 20 of 28 pixels, and its centre of mass is in the middle.
function centred(canvas, [height, width]) {
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let left = canvas.width, right = -1, top = canvas.height, bottom = -1, mass = 0, sumX = 0, sumY = 0;
  for (let place = 0; place < data.length / 4; place++) {
    const ink = data[4 * place + 3];
    if (!ink) continue;
    const x = place % canvas.width, y = Math.floor(place / canvas.width);
    [left, right, top, bottom] = [Math.min(left, x), Math.max(right, x), Math.min(top, y), Math.max(bottom, y)];
    mass += ink; sumX += ink * x; sumY += ink * y;
  }
  if (right < 0) return null;
  const scale = (20 / 28 * height) / Math.max(right - left + 1, bottom - top + 1);
  const small = new OffscreenCanvas(width, height), context = small.getContext("2d");
  context.fillRect(0, 0, width, height);
  context.imageSmoothingQuality = "high";
  context.setTransform(scale, 0, 0, scale, width / 2 - scale * sumX / mass, height / 2 - scale * sumY / mass);
  context.drawImage(canvas, 0, 0);
  const pixels = context.getImageData(0, 0, width, height).data;
  return Uint8ClampedArray.from({ length: width * height }, (_, place) => pixels[4 * place]);
}

const pad = document.getElementById("pad"), ink = document.getElementById("ink");
const pen = ink.getContext("2d", { willReadFrequently: true });
const wipe = () => pen.clearRect(0, 0, ink.width, ink.height);
let last = null;

function place(event) {
  const box = ink.getBoundingClientRect();
  return [(event.clientX - box.left) * ink.width / box.width, (event.clientY - box.top) * ink.height / box.height];
}

ink.addEventListener("pointerdown", (event) => {
  ink.setPointerCapture(event.pointerId);
  last = place(event);
  stroke(last);
});
ink.addEventListener("pointermove", (event) => last && stroke(place(event)));
for (const end of ["pointerup", "pointercancel"]) ink.addEventListener(end, () => { last = null; });
document.getElementById("pad-clear").addEventListener("click", wipe);

function stroke(to) {
  Object.assign(pen, { strokeStyle: "#fff", lineWidth: 22, lineCap: "round", lineJoin: "round" });
  pen.beginPath();
  pen.moveTo(...last);
  pen.lineTo(...to);
  pen.stroke();
  last = to;
}

// The image that somebody draws; null for an empty one, undefined if it was not to be.
export function drawDigit(size, title) {
  wipe();
  document.getElementById("pad-title").textContent = title;
  pad.returnValue = "cancel";
  pad.showModal();
  document.getElementById("pad-ok").focus();
  return new Promise((resolve) => {
    pad.addEventListener("close", () => resolve(pad.returnValue === "ok" ? centred(ink, size) : undefined), { once: true });
  });
}
