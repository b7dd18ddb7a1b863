// SPDX-License-Identifier: Apache-2.0
// All seats near the view, drawn once into a picture that is larger than the view and then moved, scaled and shown with
// every frame. A new picture is drawn in slices of a few milliseconds into a second canvas while the first one is still
// shown, so 100,000 seats never cost a frame; a seat that changes is drawn over in place.
//
//  1. `front` is shown, `back` is being drawn or null. Both know the camera they were drawn for.
//  2. A changed seat is drawn into both; the back's slices read states as they are then, so none is missed.
//  3. Seats are stamped from sprites; below 5 device pixels they are plain squares.
import { drawSeat, priceColor } from './palette.js';

const SLICE_MS = 5;
const MARGIN = 0.3; // of the view, on each side
const SEAT_SHARE = 0.8; // of the pitch
const SPRITE_PX_MIN = 5;
const PIXELS_MAX = 36e6;

class Picture {
  constructor() {
    this.canvas = typeof OffscreenCanvas === 'undefined' ? document.createElement('canvas') : new OffscreenCanvas(1, 1);
    this.context = this.canvas.getContext('2d');
  }

  /** Takes the camera's place, with a margin around its view. */
  prepare(camera, ratio, palette, map) {
    let margin = MARGIN;
    while (margin > 0 && camera.width * camera.height * ratio * ratio * (1 + 2 * margin) ** 2 > PIXELS_MAX) margin -= 0.1;
    margin = Math.max(0, margin);
    const width = Math.ceil(camera.width * (1 + 2 * margin) * ratio);
    const height = Math.ceil(camera.height * (1 + 2 * margin) * ratio);
    if (this.canvas.width !== width || this.canvas.height !== height) {
      this.canvas.width = width;
      this.canvas.height = height;
    } else {
      this.context.clearRect(0, 0, width, height);
    }
    this.scale = camera.scale * ratio; // device pixels per world unit
    this.left = camera.x - width / 2 / this.scale;
    this.top = camera.y - height / 2 / this.scale;
    this.right = this.left + width / this.scale;
    this.bottom = this.top + height / this.scale;
    this.size = Math.max(1, map.pitch * SEAT_SHARE * this.scale);
    this.cell = Math.ceil(this.size) + 4;
    this.#makeSprites(palette, map);
    this.block = 0;
    this.row = -1;
  }

  #makeSprites(palette, map) {
    this.colors = map.prices.map((_, i) => priceColor(palette, i, map.prices.length));
    this.flat = [null, palette.seatHeld, palette.seatSold, palette.seatBlocked];
    this.sprites = null;
    if (this.size < SPRITE_PX_MIN) return;
    const kinds = [...this.colors.map((color) => [0, color]), [1, ''], [2, ''], [3, '']];
    const sheet = typeof OffscreenCanvas === 'undefined' ? document.createElement('canvas') : new OffscreenCanvas(1, 1);
    sheet.width = this.cell * kinds.length;
    sheet.height = this.cell;
    const context = sheet.getContext('2d');
    kinds.forEach(([kind, color], i) => drawSeat(context, kind, color, this.cell * i + this.cell / 2, this.cell / 2, this.size, palette));
    this.sprites = sheet;
  }

  stamp(map, index, state) {
    const { context, size, cell } = this;
    const x = (map.x[index] - this.left) * this.scale;
    const y = (map.y[index] - this.top) * this.scale;
    const priceClass = map.blocks[map.blockOf[index]].priceClass;
    if (this.sprites) {
      const slot = state === 0 ? priceClass : this.colors.length + state - 1;
      context.drawImage(this.sprites, slot * cell, 0, cell, cell, Math.round(x - cell / 2), Math.round(y - cell / 2), cell, cell);
      return;
    }
    const color = state === 0 ? this.colors[priceClass] : this.flat[state];
    if (this.lastColor !== color) context.fillStyle = this.lastColor = color;
    const side = state === 0 ? size : size * 0.6;
    context.fillRect(x - side / 2, y - side / 2, side, side);
  }

  redraw(map, index, state) {
    const x = (map.x[index] - this.left) * this.scale;
    const y = (map.y[index] - this.top) * this.scale;
    const reach = Math.min(this.cell, map.pitch * this.scale);
    this.context.clearRect(Math.round(x - reach / 2), Math.round(y - reach / 2), Math.ceil(reach), Math.ceil(reach));
    this.lastColor = null;
    this.stamp(map, index, state);
  }

  /** Draws until the time is up; true when everything is there. */
  draw(map, states, until) {
    this.lastColor = null;
    const pad = map.pitch;
    for (; this.block < map.blocks.length; this.block++, this.row = -1) {
      const block = map.blocks[this.block];
      const { bounds } = block;
      if (bounds.right < this.left - pad || bounds.left > this.right + pad || bounds.bottom < this.top - pad || bounds.top > this.bottom + pad) continue;
      if (this.row < 0) this.row = block.rowFirst;
      for (; this.row < block.rowFirst + block.rowCount; this.row++) {
        this.#drawRow(map, states, map.rows[this.row], pad);
        if ((this.row & 7) === 0 && performance.now() > until) {
          this.row++;
          return false;
        }
      }
    }
    return true;
  }

  #drawRow(map, states, row, pad) {
    const endX = row.x + (row.count - 1) * row.dx;
    const endY = row.y + (row.count - 1) * row.dy;
    if (Math.max(row.x, endX) < this.left - pad || Math.min(row.x, endX) > this.right + pad) return;
    if (Math.max(row.y, endY) < this.top - pad || Math.min(row.y, endY) > this.bottom + pad) return;
    for (let i = row.first; i < row.first + row.count; i++) {
      if (map.x[i] < this.left - pad || map.x[i] > this.right + pad || map.y[i] < this.top - pad || map.y[i] > this.bottom + pad) continue;
      this.stamp(map, i, states[i]);
    }
  }

  /** Still sharp and still covering the view? */
  fits(camera, ratio) {
    const view = camera.view;
    return Math.abs(this.scale - camera.scale * ratio) < 1e-6 && view.left >= this.left - 1e-3 && view.right <= this.right + 1e-3
      && view.top >= this.top - 1e-3 && view.bottom <= this.bottom + 1e-3;
  }
}

export class SeatLayer {
  #front = null;
  #back = null;
  #spare = null;

  constructor(map) {
    this.map = map;
  }

  /** Everything must be drawn anew: other colours, another size, other states. */
  forget() {
    if (this.#front) this.#front.scale = -1;
    this.#stopBack();
  }

  #stopBack() {
    this.#spare = this.#back ?? this.#spare;
    this.#back = null;
  }

  change(index, state) {
    if (this.#front?.scale > 0) this.#front.redraw(this.map, index, state);
    this.#back?.redraw(this.map, index, state);
  }

  /** Goes on with what is not drawn yet; true while there is more to do. */
  work(camera, ratio, palette, states) {
    if (this.#front?.fits(camera, ratio)) {
      this.#stopBack();
      return false;
    }
    if (this.#back && Math.abs(Math.log(this.#back.scale / (camera.scale * ratio))) > 0.35) this.#stopBack();
    if (!this.#back) {
      this.#back = this.#spare ?? new Picture();
      this.#spare = null;
      this.#back.prepare(camera, ratio, palette, this.map);
    }
    if (this.#back.draw(this.map, states, performance.now() + SLICE_MS)) {
      this.#spare = this.#front;
      this.#front = this.#back;
      this.#back = null;
    }
    return true;
  }

  show(context, camera, ratio) {
    const front = this.#front;
    if (!front || front.scale <= 0) return;
    const zoom = (camera.scale * ratio) / front.scale;
    const [x, y] = camera.toScreen(front.left, front.top);
    context.imageSmoothingEnabled = Math.abs(zoom - 1) > 1e-6;
    if (context.imageSmoothingEnabled) context.drawImage(front.canvas, x * ratio, y * ratio, front.canvas.width * zoom, front.canvas.height * zoom);
    else context.drawImage(front.canvas, Math.round(x * ratio), Math.round(y * ratio));
  }
}
