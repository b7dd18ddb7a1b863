// SPDX-License-Identifier: Apache-2.0
// Where the map is looked at from: the world's point in the middle of the view, and CSS pixels per world unit. Moves
// glide; a person who asked for less motion gets jumps.

const GLIDE_MS = 320;
const SEAT_PX_MAX = 46;

export class Camera {
  x = 0;
  y = 0;
  scale = 1;
  width = 1;
  height = 1;
  unit = 1;
  #glide = null;

  constructor(map) {
    this.map = map;
    this.still = matchMedia('(prefers-reduced-motion: reduce)').matches;
  }

  /** `unit`: how much larger than usual everything is; insets are given for the usual size. */
  resize(width, height, insets = {}, unit = 1) {
    this.width = Math.max(1, width);
    this.height = Math.max(1, height);
    this.insets = Object.fromEntries(Object.entries(insets).map(([side, size]) => [side, size * unit]));
    this.unit = unit;
  }

  get fitScale() {
    return this.#scaleFor(this.map.bounds, 2 * this.map.pitch);
  }

  get scaleMax() {
    return Math.max((SEAT_PX_MAX * this.unit) / this.map.pitch, this.fitScale * 1.5);
  }

  #scaleFor(bounds, margin) {
    const { top = 0, right = 0, bottom = 0, left = 0 } = this.insets ?? {};
    const width = bounds.right - bounds.left + 2 * margin;
    const height = bounds.bottom - bounds.top + 2 * margin;
    return Math.max(0.01, Math.min((this.width - left - right) / width, (this.height - top - bottom) / height));
  }

  /** The camera that shows these bounds, in the part of the view that nothing covers. */
  frame(bounds, margin, scaleMax = this.scaleMax) {
    const { top = 0, right = 0, bottom = 0, left = 0 } = this.insets ?? {};
    const scale = Math.min(this.#scaleFor(bounds, margin), scaleMax);
    return {
      scale,
      x: (bounds.left + bounds.right) / 2 + (right - left) / 2 / scale,
      y: (bounds.top + bounds.bottom) / 2 + (bottom - top) / 2 / scale,
    };
  }

  overview() {
    return this.frame(this.map.bounds, 2 * this.map.pitch);
  }

  toScreen(x, y) {
    return [(x - this.x) * this.scale + this.width / 2, (y - this.y) * this.scale + this.height / 2];
  }

  toWorld(x, y) {
    return [(x - this.width / 2) / this.scale + this.x, (y - this.height / 2) / this.scale + this.y];
  }

  /** What is in view, in the world's units. */
  get view() {
    const halfWidth = this.width / 2 / this.scale;
    const halfHeight = this.height / 2 / this.scale;
    return { left: this.x - halfWidth, right: this.x + halfWidth, top: this.y - halfHeight, bottom: this.y + halfHeight };
  }

  set({ x = this.x, y = this.y, scale = this.scale }) {
    const { bounds } = this.map;
    this.scale = Math.min(Math.max(scale, this.fitScale * 0.7), this.scaleMax);
    this.x = Math.min(Math.max(x, bounds.left), bounds.right);
    this.y = Math.min(Math.max(y, bounds.top), bounds.bottom);
  }

  panBy(dx, dy) {
    this.#glide = null;
    this.set({ x: this.x - dx / this.scale, y: this.y - dy / this.scale });
  }

  /** Zooms so that the world's point under (px, py) stays there. */
  zoomAt(factor, px, py) {
    this.#glide = null;
    const [wx, wy] = this.toWorld(px, py);
    this.set({ scale: this.scale * factor });
    const [nx, ny] = this.toWorld(px, py);
    this.set({ x: this.x + wx - nx, y: this.y + wy - ny });
  }

  glideTo(target, now = performance.now()) {
    if (this.still) {
      this.set(target);
      return;
    }
    this.#glide = { from: { x: this.x, y: this.y, scale: this.scale }, to: { x: this.x, y: this.y, scale: this.scale, ...target }, start: now };
  }

  /** One step of a glide; true while it goes on. */
  step(now) {
    if (!this.#glide) return false;
    const { from, to, start } = this.#glide;
    const t = Math.min(1, (now - start) / GLIDE_MS);
    const eased = 1 - (1 - t) ** 3;
    const scale = from.scale * (to.scale / from.scale) ** eased;
    // Position follows scale, so that the target seems to come straight on.
    const share = Math.abs(to.scale - from.scale) < 1e-6 ? eased : (1 / from.scale - 1 / scale) / (1 / from.scale - 1 / to.scale);
    this.set({ x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share, scale });
    if (t >= 1) this.#glide = null;
    return t < 1;
  }
}
