// SPDX-License-Identifier: Apache-2.0
// Hands on the map: mouse, wheel, one and two fingers, keys. It moves the camera and says what was meant: a seat or a
// block was tapped, pointed at, focused, or a rectangle drawn around seats.
import { blockAt, blockTowards, seatAt, seatsIn, seatTowards } from './pick.js';

const TAP_PX = 7;
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
const PAN_PX = 90;

export class MapInput {
  #pointers = new Map();
  #moved = 0;
  #pinch = null;
  #undo = [];

  /** `hooks`: onSeat, onBlock, onHover, onFocus, onRectangle, selecting(). */
  constructor(view, hooks) {
    this.view = view;
    this.hooks = hooks;
    const { canvas } = view;
    this.#listen(canvas, 'pointerdown', (event) => this.#down(event));
    this.#listen(canvas, 'pointermove', (event) => this.#move(event));
    this.#listen(canvas, 'pointerup', (event) => this.#up(event));
    this.#listen(canvas, 'pointercancel', (event) => this.#forget(event));
    this.#listen(canvas, 'pointerleave', () => this.#point(null));
    this.#listen(canvas, 'wheel', (event) => this.#wheel(event), { passive: false });
    this.#listen(canvas, 'keydown', (event) => this.#key(event));
    this.#listen(canvas, 'dblclick', (event) => event.preventDefault());
  }

  destroy() {
    for (const undo of this.#undo) undo();
  }

  #listen(target, name, listener, options) {
    target.addEventListener(name, listener, options);
    this.#undo.push(() => target.removeEventListener(name, listener, options));
  }

  #place(event) {
    const box = this.view.canvas.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  #down(event) {
    if (event.button > 1) return;
    this.view.canvas.setPointerCapture(event.pointerId);
    const place = this.#place(event);
    this.#pointers.set(event.pointerId, place);
    if (this.#pointers.size === 1) {
      this.#moved = 0;
      this.start = place;
      this.selecting = this.hooks.selecting?.(event) ?? false;
    } else {
      this.selecting = false;
      this.view.rectangle = null;
      this.#pinch = this.#spread();
      this.#moved = Infinity;
    }
  }

  #spread() {
    const [a, b] = [...this.#pointers.values()];
    return { distance: Math.hypot(a.x - b.x, a.y - b.y), x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
  }

  #move(event) {
    const place = this.#place(event);
    const before = this.#pointers.get(event.pointerId);
    if (!before) {
      if (event.pointerType !== 'touch') this.#point(place);
      return;
    }
    this.#pointers.set(event.pointerId, place);
    if (this.#pointers.size === 2) {
      const now = this.#spread();
      this.view.camera.panBy(now.x - this.#pinch.x, now.y - this.#pinch.y);
      this.view.camera.zoomAt(now.distance / Math.max(1, this.#pinch.distance), now.x, now.y);
      this.#pinch = now;
      this.view.draw();
      return;
    }
    this.#moved = Math.max(this.#moved, Math.hypot(place.x - this.start.x, place.y - this.start.y));
    if (this.#moved < TAP_PX) return;
    if (this.selecting) this.view.rectangle = rectangleOf(this.start, place);
    else this.view.camera.panBy(place.x - before.x, place.y - before.y);
    this.#point(null);
    this.view.draw();
  }

  #up(event) {
    const place = this.#place(event);
    const wasAlone = this.#pointers.size === 1;
    this.#forget(event);
    if (!wasAlone) return;
    if (this.selecting && this.#moved >= TAP_PX) {
      const { view } = this;
      const box = view.rectangle;
      view.rectangle = null;
      const [left, top] = view.camera.toWorld(box.x, box.y);
      const [right, bottom] = view.camera.toWorld(box.x + box.width, box.y + box.height);
      this.hooks.onRectangle?.(seatsIn(view.map, { left, top, right, bottom }), event);
      view.draw();
    } else if (this.#moved < TAP_PX) this.#tap(place, event);
  }

  #forget(event) {
    this.#pointers.delete(event.pointerId);
    if (this.#pointers.size === 1) this.start = [...this.#pointers.values()][0];
  }

  #tap(place, event) {
    const { view } = this;
    const [x, y] = view.camera.toWorld(place.x, place.y);
    if (view.isNear) {
      // A finger is wide: it may miss by more than a pointer.
      const reach = Math.max(0.62 * view.map.pitch, (event.pointerType === 'touch' ? 18 : 5) / view.camera.scale);
      const seat = seatAt(view.map, x, y, Math.min(reach, 1.5 * view.map.pitch));
      if (seat >= 0) this.hooks.onSeat(seat, event);
    } else {
      const block = blockAt(view.map, x, y);
      if (block >= 0) this.hooks.onBlock(block);
      else view.camera.glideTo({ x, y, scale: view.camera.scale * 1.8 });
      view.draw();
    }
  }

  #point(place) {
    const { view } = this;
    let seat = -1;
    let block = -1;
    if (place) {
      const [x, y] = view.camera.toWorld(place.x, place.y);
      if (view.isNear) seat = seatAt(view.map, x, y);
      else block = blockAt(view.map, x, y);
    }
    view.canvas.style.cursor = seat >= 0 || block >= 0 ? 'pointer' : '';
    if (seat === view.hover && block === view.hoverBlock) return;
    view.hover = seat;
    view.hoverBlock = block;
    this.hooks.onHover(seat, block);
    view.draw();
  }

  #wheel(event) {
    event.preventDefault();
    const place = this.#place(event);
    const lines = event.deltaMode === 1 ? 16 : 1;
    this.view.camera.zoomAt(Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.008 : 0.0017)), place.x, place.y);
    this.#point(place);
    this.view.draw();
  }

  #key(event) {
    const { view } = this;
    const arrow = ARROWS[event.key];
    if (arrow && event.shiftKey) {
      view.camera.panBy(-arrow[0] * PAN_PX, -arrow[1] * PAN_PX);
      view.draw();
    } else if (arrow) this.#step(arrow);
    else if (event.key === '+' || event.key === '=') view.zoomBy(1.5);
    else if (event.key === '-' || event.key === '_') view.zoomBy(1 / 1.5);
    else if (event.key === 'Home' || event.key === '0') this.#leave();
    else if (event.key === 'Escape' && view.isNear) this.#leave();
    else if (event.key === 'Enter' || event.key === ' ') this.#choose(event);
    else return;
    event.preventDefault();
  }

  #leave() {
    const { view } = this;
    if (view.focus >= 0) view.focusBlock = view.map.blockOf[view.focus];
    view.focus = -1;
    this.hooks.onFocus(-1, view.focusBlock);
    view.overview();
  }

  #step([dx, dy]) {
    const { view } = this;
    const { map } = view;
    if (view.isNear) {
      let next;
      if (view.focus < 0) next = this.#middleSeat();
      else next = seatTowards(map, view.focus, dx, dy);
      if (next < 0) return;
      view.focus = next;
      const [x, y] = view.camera.toScreen(map.x[next], map.y[next]);
      if (x < 60 || y < 60 || x > view.camera.width - 60 || y > view.camera.height - 60) view.camera.glideTo({ x: map.x[next], y: map.y[next] });
      this.hooks.onFocus(next, -1);
    } else {
      const next = view.focusBlock < 0 ? 0 : blockTowards(map, view.focusBlock, dx, dy);
      if (next < 0) return;
      view.focusBlock = next;
      this.hooks.onFocus(-1, next);
    }
    view.draw();
  }

  #middleSeat() {
    const { view } = this;
    if (view.focusBlock >= 0) return view.map.blocks[view.focusBlock].first;
    return Math.max(0, seatAt(view.map, view.camera.x, view.camera.y, Infinity));
  }

  #choose(event) {
    const { view } = this;
    if (view.isNear && view.focus >= 0) this.hooks.onSeat(view.focus, event);
    else if (!view.isNear && view.focusBlock >= 0) {
      this.hooks.onBlock(view.focusBlock);
      view.focus = view.map.blocks[view.focusBlock].first;
      this.hooks.onFocus(view.focus, -1);
    }
  }
}

function rectangleOf(a, b) {
  return { x: Math.min(a.x, b.x), y: Math.min(a.y, b.y), width: Math.abs(a.x - b.x), height: Math.abs(a.y - b.y) };
}
