// SPDX-License-Identifier: Apache-2.0
// The map's colours, read from the style sheet so that light and dark have one home, and the shapes of a seat's states.
// Price classes differ in lightness, not only in hue, and each state has a shape of its own: full, ring, dot, cross,
// check. So the map reads the same without colours.

const NAMES = ['map-back', 'map-block', 'map-line', 'map-ink', 'map-stage', 'map-stage-ink', 'seat-held', 'seat-sold', 'seat-blocked', 'seat-mine', 'seat-mine-ink', 'seat-focus', 'seat-warn'];

export function readPalette(element) {
  const style = getComputedStyle(element);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  const palette = Object.fromEntries(NAMES.map((name) => [name.replaceAll(/-(\w)/g, (_, letter) => letter.toUpperCase()), read(name)]));
  palette.prices = [1, 2, 3, 4, 5, 6].map((i) => read(`price-${i}`));
  palette.font = style.fontFamily;
  return palette;
}

/** Which colour a class gets when there are fewer classes than colours: spread over the whole range. */
export function priceColor(palette, priceClass, classCount) {
  if (classCount <= 1) return palette.prices[3];
  return palette.prices[Math.round((priceClass * (palette.prices.length - 1)) / (classCount - 1))];
}

/** Draws one seat of `size` around (x, y). `kind` is a state's number or 'mine'. */
export function drawSeat(context, kind, color, x, y, size, palette) {
  const half = size / 2;
  const line = Math.max(1, size * 0.13);
  context.beginPath();
  if (kind === 0) {
    context.fillStyle = color;
    context.roundRect(x - half, y - half, size, size, size * 0.3);
    context.fill();
  } else if (kind === 1) {
    context.strokeStyle = palette.seatHeld;
    context.lineWidth = line;
    context.roundRect(x - half + line / 2, y - half + line / 2, size - line, size - line, size * 0.26);
    context.stroke();
    context.beginPath();
    context.fillStyle = palette.seatHeld;
    context.arc(x, y, size * 0.16, 0, 7);
    context.fill();
  } else if (kind === 2) {
    context.fillStyle = palette.seatSold;
    context.arc(x, y, size * 0.24, 0, 7);
    context.fill();
  } else if (kind === 3) {
    const arm = size * 0.26;
    context.strokeStyle = palette.seatBlocked;
    context.lineWidth = line;
    context.moveTo(x - arm, y - arm);
    context.lineTo(x + arm, y + arm);
    context.moveTo(x + arm, y - arm);
    context.lineTo(x - arm, y + arm);
    context.stroke();
  } else {
    drawMine(context, x, y, size * 1.12, palette);
  }
}

function drawMine(context, x, y, size, palette) {
  const half = size / 2;
  context.fillStyle = palette.seatMine;
  context.roundRect(x - half, y - half, size, size, size * 0.3);
  context.fill();
  if (size < 7) return;
  context.beginPath();
  context.strokeStyle = palette.seatMineInk;
  context.lineWidth = Math.max(1.2, size * 0.14);
  context.lineCap = context.lineJoin = 'round';
  context.moveTo(x - size * 0.22, y + size * 0.02);
  context.lineTo(x - size * 0.05, y + size * 0.19);
  context.lineTo(x + size * 0.24, y - size * 0.17);
  context.stroke();
}
