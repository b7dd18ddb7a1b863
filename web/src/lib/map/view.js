// SPDX-License-Identifier: Apache-2.0
// The map on its canvas: what is drawn, in which order, and when. It draws only when something changed: the camera, a
// seat, what is pointed at, or an animation that is still running.
//
//   back, stage, blocks │ seats (seatlayer.js) │ changes, mine, selection, focus │ labels
//
// Far away blocks are shapes with their name and free seats; near, seats. In between the one fades into the other.
import { Camera } from './camera.js';
import { drawSeat, priceColor, readPalette } from './palette.js';
import { SeatLayer } from './seatlayer.js';

const PULSE_MS = 700;
const PULSES_MAX = 500;
const NEAR_PX = 6; // seats this far apart are worth drawing one by one
const ROW_LABEL_PX = 13;
const SMALL_HALL_PX = 11; // a hall whose seats are this far apart as a whole needs no overview

export class MapView {
  hover = -1;
  hoverBlock = -1;
  focus = -1;
  focusBlock = -1;
  unit = 1;
  rectangle = null; // being drawn by the operator, in CSS pixels
  #frame = 0;
  #pulses = [];
  #reported = '';

  /** `source` has map and states; `hooks` mine(), selection(), onView(). */
  constructor(canvas, source, hooks) {
    Object.assign(this, { canvas, source, hooks, map: source.map });
    this.context = canvas.getContext('2d', { alpha: false });
    this.camera = new Camera(this.map);
    this.layer = new SeatLayer(this.map);
    this.palette = readPalette(canvas);
    this.frames = []; // durations of the last frames, for measuring
  }

  destroy() {
    cancelAnimationFrame(this.#frame);
  }

  resize(width, height, insets) {
    const first = this.camera.width === 1;
    const wasOverview = first || Math.abs(this.camera.scale / this.camera.fitScale - 1) < 0.05;
    this.ratio = Math.min(2, devicePixelRatio || 1);
    // Sizes are for type of 16 pixels; a huge screen has larger type, and so has its map.
    this.unit = parseFloat(getComputedStyle(document.documentElement).fontSize) / 16 || 1;
    this.canvas.width = Math.round(width * this.ratio);
    this.canvas.height = Math.round(height * this.ratio);
    this.camera.resize(width, height, insets, this.unit);
    if (wasOverview) this.camera.set(this.camera.overview());
    this.draw();
  }

  recolor() {
    this.palette = readPalette(this.canvas);
    this.layer.forget();
    this.draw();
  }

  reload() {
    this.layer.forget();
    this.draw();
  }

  /** Other prices on the same seats leave the view where it is; another hall is shown whole. */
  replaceMap(map, sameSeats) {
    this.map = this.camera.map = map;
    this.layer = new SeatLayer(map);
    if (!sameSeats) {
      this.hover = this.hoverBlock = this.focus = this.focusBlock = -1;
      this.#pulses = [];
      this.camera.set(this.camera.overview());
    }
    this.draw();
  }

  /** Seats changed: draw them over, and let them be seen. */
  change(changes) {
    const now = performance.now();
    for (const { index, after } of changes) {
      this.layer.change(index, after);
      if (this.#pulses.length < PULSES_MAX) this.#pulses.push({ index, after, start: now });
    }
    this.draw();
  }

  /** Distance of seats in CSS pixels. */
  get seatPx() {
    return this.camera.scale * this.map.pitch;
  }

  /** Seats this far apart are shown: near enough, and never in the first view of a large hall. */
  get nearPx() {
    const fit = this.camera.fitScale * this.map.pitch;
    return fit > SMALL_HALL_PX * this.unit ? NEAR_PX * this.unit : Math.max(NEAR_PX * this.unit, fit * 1.3);
  }

  /** 0: blocks, 1: seats. */
  get nearness() {
    return Math.min(1, Math.max(0, (this.seatPx / this.nearPx - 0.85) / 0.25));
  }

  get isNear() {
    return this.seatPx >= this.nearPx;
  }

  draw() {
    this.#frame ||= requestAnimationFrame((now) => this.#turn(now));
  }

  #turn(now) {
    this.#frame = 0;
    const begun = performance.now();
    const gliding = this.camera.step(now);
    const nearness = this.nearness;
    const working = nearness > 0 && this.layer.work(this.camera, this.ratio, this.palette, this.source.states);
    this.#paint(nearness, now);
    this.#pulses = this.#pulses.filter((pulse) => now - pulse.start < PULSE_MS);
    this.#report();
    this.frames.push(performance.now() - begun);
    if (this.frames.length > 600) this.frames.shift();
    if (gliding || working || this.#pulses.length > 0) this.draw();
  }

  #report() {
    const state = this.isNear ? 'seats' : 'sections';
    if (state === this.#reported) return;
    this.#reported = state;
    this.hooks.onView?.(state);
  }

  #paint(nearness, now) {
    const { context, ratio, canvas, camera, palette } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.fillStyle = palette.mapBack;
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.#paintStage();
    this.#paintBlocks(nearness);
    if (nearness > 0) {
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.globalAlpha = nearness;
      this.layer.show(context, camera, ratio);
      context.globalAlpha = 1;
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
    }
    this.#paintPulses(now, nearness);
    this.#paintMine();
    this.#paintSelection();
    if (this.seatPx >= ROW_LABEL_PX * this.unit && nearness === 1) this.#paintRowLabels();
    if (nearness < 1) this.#paintBlockLabels(1 - nearness);
    this.#paintFocus();
    this.#paintRectangle();
  }

  #paintStage() {
    const { context, camera, palette, map } = this;
    const { stage } = map;
    const [x, y] = camera.toScreen(stage.x, stage.y);
    const width = stage.width * camera.scale;
    const height = stage.height * camera.scale;
    context.beginPath();
    context.fillStyle = palette.mapStage;
    context.roundRect(x, y, width, height, Math.min(height / 3, 14 * this.unit));
    context.fill();
    const size = Math.min(Math.max(11, height * 0.34), 28 * this.unit);
    if (!stage.label || height < 12) return;
    context.fillStyle = palette.mapStageInk;
    context.font = `600 ${size}px ${palette.font}`;
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    context.letterSpacing = '0.18em';
    context.fillText(stage.label.toUpperCase(), x + width / 2 + size * 0.09, y + height / 2, width - 8);
    context.letterSpacing = '0px';
  }

  #inView(bounds, pad) {
    const view = this.camera.view;
    return bounds.right > view.left - pad && bounds.left < view.right + pad && bounds.bottom > view.top - pad && bounds.top < view.bottom + pad;
  }

  #tracePath(block) {
    const { context, camera } = this;
    context.beginPath();
    for (let i = 0; i < block.hull.length; i += 2) {
      const [x, y] = camera.toScreen(block.hull[i], block.hull[i + 1]);
      if (i === 0) context.moveTo(x, y);
      else context.lineTo(x, y);
    }
    context.closePath();
  }

  #paintBlocks(nearness) {
    const { context, camera, palette, map } = this;
    const pad = 1.25 * map.pitch * camera.scale;
    context.lineJoin = 'round';
    for (const block of map.blocks) {
      if (!this.#inView(block.bounds, 2 * map.pitch)) continue;
      this.#tracePath(block);
      context.lineWidth = pad;
      context.fillStyle = context.strokeStyle = palette.mapBlock;
      context.stroke();
      context.fill();
      if (nearness < 1) {
        const counts = this.source.blockCounts?.[block.at];
        const free = counts ? counts[0] / Math.max(1, block.count) : 1;
        context.globalAlpha = (1 - nearness) * (free === 0 ? 0.08 : 0.3 + 0.7 * free);
        context.fillStyle = context.strokeStyle = priceColor(palette, block.priceClass, map.prices.length);
        // Fill and stroke overlap; one path of both keeps a half-transparent block even.
        this.#fillPadded(block, pad);
        context.globalAlpha = 1;
      }
      if (!this.isNear && (block.at === this.hoverBlock || block.at === this.focusBlock)) this.#outline(block, pad);
    }
  }

  #fillPadded(block, pad) {
    const { context } = this;
    if (context.globalAlpha > 0.99) {
      context.lineWidth = pad;
      context.stroke();
      context.fill();
      return;
    }
    const alpha = context.globalAlpha;
    const color = context.fillStyle;
    context.globalAlpha = 1;
    context.fillStyle = context.strokeStyle = mix(this.palette.mapBlock, color, alpha);
    context.lineWidth = pad;
    context.stroke();
    context.fill();
  }

  #outline(block, pad) {
    const { context, palette } = this;
    // A wider stroke beneath would cover neighbours: the ring is drawn and its inside painted again.
    const fill = context.fillStyle;
    context.strokeStyle = palette.seatFocus;
    context.lineWidth = pad + 5;
    context.stroke();
    context.strokeStyle = fill;
    context.lineWidth = pad;
    context.stroke();
    context.fill();
  }

  #paintBlockLabels(alpha) {
    const { context, camera, palette, map, unit } = this;
    context.globalAlpha = alpha;
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    for (const block of map.blocks) {
      if (!this.#inView(block.bounds, 0)) continue;
      const width = (block.bounds.right - block.bounds.left + map.pitch) * camera.scale;
      const height = (block.bounds.bottom - block.bounds.top + map.pitch) * camera.scale;
      if (width < 26 * unit || height < 14 * unit) continue;
      const [x, y] = camera.toScreen(block.cx, block.cy);
      const size = Math.min(15 * unit, Math.max(10 * unit, Math.min(width / 5.5, height / 2.6)));
      const two = height > size * 3.1 && width > 44 * unit;
      const free = this.source.blockCounts?.[block.at]?.[0] ?? block.count;
      this.#pill(x, y, block.code, two ? this.hooks.freeText?.(free) ?? '' : '', size, palette);
    }
    context.globalAlpha = 1;
  }

  #pill(x, y, first, second, size, palette) {
    const { context } = this;
    const bold = `650 ${size}px ${palette.font}`;
    const thin = `500 ${size * 0.78}px ${palette.font}`;
    context.font = bold;
    let width = context.measureText(first).width;
    if (second) {
      context.font = thin;
      width = Math.max(width, context.measureText(second).width);
    }
    const height = second ? size * 2.5 : size * 1.5;
    context.fillStyle = palette.mapBack;
    context.beginPath();
    context.roundRect(x - width / 2 - size * 0.5, y - height / 2, width + size, height, size * 0.55);
    const alpha = context.globalAlpha;
    context.globalAlpha = alpha * 0.86;
    context.fill();
    context.globalAlpha = alpha;
    context.fillStyle = palette.mapInk;
    context.font = bold;
    context.fillText(first, x, second ? y - size * 0.5 : y + size * 0.04);
    if (!second) return;
    context.font = thin;
    context.fillText(second, x, y + size * 0.62);
  }

  #paintRowLabels() {
    const { context, camera, palette, map } = this;
    const view = camera.view;
    const size = Math.min(13 * this.unit, this.seatPx * 0.5);
    context.font = `600 ${size}px ${palette.font}`;
    context.fillStyle = palette.mapLine;
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    for (const block of map.blocks) {
      if (!this.#inView(block.bounds, map.pitch)) continue;
      for (let r = block.rowFirst; r < block.rowFirst + block.rowCount; r++) {
        const row = map.rows[r];
        const x = row.x - row.dx;
        const y = row.y - row.dy;
        if (x < view.left || x > view.right || y < view.top || y > view.bottom) continue;
        const [sx, sy] = camera.toScreen(x, y);
        context.fillText(row.label, sx, sy);
      }
    }
  }

  #seatSize(min = 0) {
    return Math.max(min, 0.8 * this.seatPx);
  }

  #paintPulses(now, nearness) {
    const { context, camera, palette, map } = this;
    for (const { index, after, start } of this.#pulses) {
      const t = (now - start) / PULSE_MS;
      if (t < 0 || t >= 1) continue;
      const [x, y] = camera.toScreen(map.x[index], map.y[index]);
      if (x < -20 || y < -20 || x > camera.width + 20 || y > camera.height + 20) continue;
      const color = after === 0 ? priceColor(palette, map.blocks[map.blockOf[index]].priceClass, map.prices.length) : after === 2 ? palette.mapInk : palette.seatWarn;
      context.strokeStyle = context.fillStyle = color;
      if (nearness > 0.5) {
        context.globalAlpha = (1 - t) * 0.9;
        context.lineWidth = 2;
        context.beginPath();
        context.arc(x, y, this.#seatSize(4) * (0.5 + 0.75 * t), 0, 7);
        context.stroke();
      } else {
        context.globalAlpha = (1 - t) * 0.9;
        context.beginPath();
        context.arc(x, y, 1.6 + 1.4 * t, 0, 7);
        context.fill();
      }
    }
    context.globalAlpha = 1;
  }

  #paintMine() {
    const mine = this.hooks.mine?.();
    if (!mine) return;
    const size = this.#seatSize(5);
    for (const index of mine) {
      const [x, y] = this.camera.toScreen(this.map.x[index], this.map.y[index]);
      drawSeat(this.context, 'mine', '', x, y, size, this.palette);
    }
  }

  #ring(index, color, grow) {
    const { context, camera, map } = this;
    const [x, y] = camera.toScreen(map.x[index], map.y[index]);
    const size = this.#seatSize(6) + grow;
    context.strokeStyle = color;
    context.lineWidth = this.isNear ? 2.5 : 1;
    context.beginPath();
    context.roundRect(x - size / 2, y - size / 2, size, size, size * 0.32);
    context.stroke();
  }

  #paintSelection() {
    const selection = this.hooks.selection?.();
    if (!selection) return;
    const view = this.camera.view;
    for (const index of selection) {
      const x = this.map.x[index];
      const y = this.map.y[index];
      if (x > view.left && x < view.right && y > view.top && y < view.bottom) this.#ring(index, this.palette.seatMine, 2);
    }
  }

  #paintFocus() {
    for (const index of this.hooks.warned?.() ?? []) this.#ring(index, this.palette.seatWarn, 5);
    if (this.hover >= 0 && this.isNear) this.#ring(this.hover, this.palette.mapInk, 4);
    if (this.focus >= 0 && this.isNear) this.#ring(this.focus, this.palette.seatFocus, 6);
  }

  #paintRectangle() {
    if (!this.rectangle) return;
    const { context, palette } = this;
    const { x, y, width, height } = this.rectangle;
    context.fillStyle = palette.seatMine;
    context.globalAlpha = 0.14;
    context.fillRect(x, y, width, height);
    context.globalAlpha = 1;
    context.strokeStyle = palette.seatMine;
    context.lineWidth = 1.5;
    context.strokeRect(x, y, width, height);
  }

  zoomToBlock(block) {
    const { map, camera } = this;
    const target = camera.frame(map.blocks[block].bounds, 1.5 * map.pitch);
    target.scale = Math.max(target.scale, (this.nearPx * 1.15) / map.pitch);
    camera.glideTo(target);
    this.draw();
  }

  zoomToSeat(index) {
    const { map, camera } = this;
    const scale = Math.max(camera.scale, Math.max(22 * this.unit, this.nearPx * 1.2) / map.pitch);
    camera.glideTo({ x: map.x[index], y: map.y[index], scale });
    this.draw();
  }

  zoomToSeats(indexes) {
    const { map, camera } = this;
    const xs = indexes.map((i) => map.x[i]);
    const ys = indexes.map((i) => map.y[i]);
    const bounds = { left: Math.min(...xs), right: Math.max(...xs), top: Math.min(...ys), bottom: Math.max(...ys) };
    camera.glideTo(camera.frame(bounds, 7 * map.pitch, Math.max(26 * this.unit, this.nearPx * 1.2) / map.pitch));
    this.draw();
  }

  overview() {
    this.camera.glideTo(this.camera.overview());
    this.draw();
  }

  zoomBy(factor) {
    this.camera.glideTo({ scale: Math.min(this.camera.scaleMax, Math.max(this.camera.fitScale * 0.7, this.camera.scale * factor)) });
    this.draw();
  }
}

const mixed = new Map();

/** `share` of color over back; both #rrggbb. */
function mix(back, color, share) {
  const key = `${back}${color}${Math.round(share * 50)}`;
  if (!mixed.has(key)) {
    const part = (hex, i) => parseInt(hex.slice(1 + 2 * i, 3 + 2 * i), 16);
    const channel = (i) => Math.round(part(back, i) + (part(color, i) - part(back, i)) * share).toString(16).padStart(2, '0');
    mixed.set(key, `#${channel(0)}${channel(1)}${channel(2)}`);
    if (mixed.size > 2000) mixed.clear();
  }
  return mixed.get(key) ?? color;
}
