// SPDX-License-Identifier: Apache-2.0
// From a layout document to the arrays that the map draws from: one entry a seat, in layout order, the order of
// availability and of the stream's frames. Rows are straight: first seat and step. A layout without positions is placed
// on shelves: a section a shelf, its subsections side by side.

const SHELF_GAP = 3;
const AISLE = 2.5;

function hasPlaces(blocks) {
  return blocks.every((block) => block.rows.every((row) => Number.isFinite(row.x) && Number.isFinite(row.y)));
}

/** Gives every row x, y, dx, dy. */
function placeOnShelves(blocks) {
  const shelves = new Map();
  for (const block of blocks) {
    if (!shelves.has(block.section)) shelves.set(block.section, []);
    shelves.get(block.section).push(block);
  }
  let y = 0;
  for (const shelf of shelves.values()) {
    const ordered = [...shelf].sort((a, b) => a.subsection - b.subsection);
    const widths = ordered.map((block) => Math.max(1, ...block.rows.map((row) => row.seat_numbers.length)));
    let x = -(widths.reduce((sum, width) => sum + width, 0) + AISLE * (widths.length - 1)) / 2;
    ordered.forEach((block, i) => {
      block.rows.forEach((row, r) => {
        Object.assign(row, { x: x + (widths[i] - row.seat_numbers.length) / 2 + 0.5, y: y + r, dx: 1, dy: 0 });
      });
      x += widths[i] + AISLE;
    });
    y += Math.max(...ordered.map((block) => block.rows.length)) + SHELF_GAP;
  }
}

/** Andrew's monotone chain; a flat array x, y, x, y, … */
function hullOf(points) {
  points.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const cross = (o, a, b) => (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0]);
  const half = (list) => {
    const chain = [];
    for (const point of list) {
      while (chain.length >= 2 && cross(chain.at(-2), chain.at(-1), point) <= 0) chain.pop();
      chain.push(point);
    }
    chain.pop();
    return chain;
  };
  if (points.length < 3) return points.flat();
  return [...half(points), ...half(points.reverse())].flat();
}

function boundsOf(flat) {
  const bounds = { left: Infinity, top: Infinity, right: -Infinity, bottom: -Infinity };
  for (let i = 0; i < flat.length; i += 2) {
    bounds.left = Math.min(bounds.left, flat[i]);
    bounds.right = Math.max(bounds.right, flat[i]);
    bounds.top = Math.min(bounds.top, flat[i + 1]);
    bounds.bottom = Math.max(bounds.bottom, flat[i + 1]);
  }
  return bounds;
}

export function union(a, b) {
  return {
    left: Math.min(a.left, b.left), top: Math.min(a.top, b.top),
    right: Math.max(a.right, b.right), bottom: Math.max(a.bottom, b.bottom),
  };
}

function readStage(stage, bounds) {
  const numbers = stage && ['x', 'y', 'width', 'height'].every((key) => Number.isFinite(stage[key]));
  if (numbers) return { label: String(stage.label ?? ''), x: stage.x, y: stage.y, width: stage.width, height: stage.height };
  const width = (bounds.right - bounds.left) * 0.5 + 2;
  return { label: String(stage?.label ?? ''), x: (bounds.left + bounds.right - width) / 2, y: bounds.top - 6, width, height: 3 };
}

function middleOf(values) {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? 1;
}

export function readLayout(layout) {
  const documentBlocks = layout.blocks;
  if (!hasPlaces(documentBlocks)) placeOnShelves(documentBlocks);
  const count = documentBlocks.reduce((sum, block) => sum + block.rows.reduce((inner, row) => inner + row.seat_numbers.length, 0), 0);
  const map = {
    name: layout.name, count, x: new Float32Array(count), y: new Float32Array(count),
    blockOf: new Uint16Array(count), rowOf: new Int32Array(count),
    seatIds: new Array(count), seatNumbers: new Array(count), rows: [], blocks: [], indexOf: new Map(),
  };
  let index = 0;
  const steps = [];
  for (const source of documentBlocks) {
    const block = {
      id: source.block_id, code: source.block ?? `${source.section}-${source.subsection}`, name: source.name,
      section: source.section, subsection: source.subsection, price: source.price_cents, first: index, count: 0,
      rowFirst: map.rows.length, rowCount: source.rows.length, at: map.blocks.length,
    };
    const edge = [];
    for (const sourceRow of source.rows) {
      const dx = sourceRow.dx || (sourceRow.dy ? 0 : 1);
      const dy = sourceRow.dy || 0;
      const size = sourceRow.seat_numbers.length;
      const row = { label: sourceRow.label, block: block.at, first: index, count: size, x: sourceRow.x, y: sourceRow.y, dx, dy };
      steps.push(Math.hypot(dx, dy) || 1);
      for (let i = 0; i < size; i++, index++) {
        map.x[index] = row.x + i * dx;
        map.y[index] = row.y + i * dy;
        map.blockOf[index] = block.at;
        map.rowOf[index] = map.rows.length;
        map.seatNumbers[index] = sourceRow.seat_numbers[i];
        map.seatIds[index] = sourceRow.seat_ids?.[i] ?? null;
        if (map.seatIds[index]) map.indexOf.set(map.seatIds[index], index);
      }
      if (size > 0) edge.push([row.x, row.y], [row.x + (size - 1) * dx, row.y + (size - 1) * dy]);
      map.rows.push(row);
    }
    block.count = index - block.first;
    block.hull = hullOf(edge);
    block.bounds = boundsOf(block.hull);
    block.cx = (block.bounds.left + block.bounds.right) / 2;
    block.cy = (block.bounds.top + block.bounds.bottom) / 2;
    map.blocks.push(block);
  }
  map.pitch = middleOf(steps);
  map.bounds = boundsOf(map.blocks.flatMap((block) => [block.bounds.left, block.bounds.top, block.bounds.right, block.bounds.bottom]));
  map.stage = readStage(layout.stage, map.bounds);
  map.bounds = union(map.bounds, { left: map.stage.x, top: map.stage.y, right: map.stage.x + map.stage.width, bottom: map.stage.y + map.stage.height });
  map.prices = priceClasses(map.blocks);
  for (const block of map.blocks) block.priceClass = map.prices.findIndex((one) => block.price <= one.to);
  return map;
}

export const PRICE_CLASS_COUNT = 6;

/** At most six classes of prices, cheapest first: {from, to}. */
export function priceClasses(blocks) {
  const prices = [...new Set(blocks.map((block) => block.price))].sort((a, b) => a - b);
  const size = Math.ceil(prices.length / PRICE_CLASS_COUNT);
  const classes = [];
  for (let i = 0; i < prices.length; i += size) {
    const part = prices.slice(i, i + size);
    classes.push({ from: part[0], to: part.at(-1) });
  }
  return classes;
}

/** A layout document as an admin writes it becomes the form in which the server gives it back. */
export function previewOf(document) {
  return {
    name: document.name, stage: document.stage,
    blocks: document.blocks.map((block) => ({
      ...block, block_id: null, block: `${block.section}-${block.subsection}`,
      rows: block.rows.map((row) => ({
        ...row, seat_numbers: Array.isArray(row.seats) ? row.seats.map(String) : Array.from({ length: row.seats }, (_, i) => String(i + 1)),
      })),
    })),
  };
}
