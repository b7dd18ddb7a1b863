// SPDX-License-Identifier: Apache-2.0
// What is at a point, in a direction, or in a rectangle. Rows are straight lines, so a row answers by projection and
// nobody walks over all seats for a moving pointer.

/** The seat whose middle is within `reach` of the point, or −1. */
export function seatAt(map, x, y, reach = 0.62 * map.pitch) {
  let best = -1;
  let bestDistance = reach * reach;
  for (const block of map.blocks) {
    const { bounds } = block;
    if (x < bounds.left - reach || x > bounds.right + reach || y < bounds.top - reach || y > bounds.bottom + reach) continue;
    for (let r = block.rowFirst; r < block.rowFirst + block.rowCount; r++) {
      const row = map.rows[r];
      if (row.count === 0) continue;
      const along = ((x - row.x) * row.dx + (y - row.y) * row.dy) / (row.dx * row.dx + row.dy * row.dy);
      const seat = row.first + Math.min(row.count - 1, Math.max(0, Math.round(along)));
      const distance = (map.x[seat] - x) ** 2 + (map.y[seat] - y) ** 2;
      if (distance < bestDistance) {
        bestDistance = distance;
        best = seat;
      }
    }
  }
  return best;
}

function insideHull(hull, x, y) {
  let inside = false;
  for (let i = 0, j = hull.length - 2; i < hull.length; j = i, i += 2) {
    const crosses = hull[i + 1] > y !== hull[j + 1] > y;
    if (crosses && x < ((hull[j] - hull[i]) * (y - hull[i + 1])) / (hull[j + 1] - hull[i + 1]) + hull[i]) inside = !inside;
  }
  return inside;
}

/** The block under a point, or −1. */
export function blockAt(map, x, y) {
  for (const block of map.blocks) if (insideHull(block.hull, x, y)) return block.at;
  const seat = seatAt(map, x, y, map.pitch);
  return seat < 0 ? -1 : map.blockOf[seat];
}

/** The nearest thing from a point in a direction: `places` gives [x, y] of each candidate. */
function nearestTowards(count, placeOf, fromX, fromY, dx, dy) {
  let best = -1;
  let bestCost = Infinity;
  for (let i = 0; i < count; i++) {
    const [x, y] = placeOf(i);
    const along = (x - fromX) * dx + (y - fromY) * dy;
    if (along < 0.25) continue;
    const across = Math.abs((x - fromX) * dy - (y - fromY) * dx);
    const cost = along + 2.5 * across;
    if (cost < bestCost) {
      bestCost = cost;
      best = i;
    }
  }
  return best;
}

export function seatTowards(map, from, dx, dy) {
  const place = [0, 0];
  return nearestTowards(map.count, (i) => {
    place[0] = map.x[i];
    place[1] = map.y[i];
    return place;
  }, map.x[from], map.y[from], dx, dy);
}

export function blockTowards(map, from, dx, dy) {
  const { cx, cy } = map.blocks[from];
  return nearestTowards(map.blocks.length, (i) => [map.blocks[i].cx, map.blocks[i].cy], cx, cy, dx, dy);
}

export function seatsIn(map, { left, top, right, bottom }) {
  const found = [];
  for (const block of map.blocks) {
    const { bounds } = block;
    if (bounds.right < left || bounds.left > right || bounds.bottom < top || bounds.top > bottom) continue;
    for (let i = block.first; i < block.first + block.count; i++) {
      if (map.x[i] >= left && map.x[i] <= right && map.y[i] >= top && map.y[i] <= bottom) found.push(i);
    }
  }
  return found;
}
