// SPDX-License-Identifier: Apache-2.0
// What can be said about seats from the map and their states alone.

export const STATES = ['available', 'held', 'sold', 'blocked'];
export const AVAILABLE = 0;
export const HELD = 1;
export const SOLD = 2;
export const BLOCKED = 3;

/** Block, row and number of a seat, for people. */
export function placeOf(map, index) {
  const row = map.rows[map.rowOf[index]];
  const block = map.blocks[row.block];
  return { block: block.code, blockName: block.name, row: row.label, seat: map.seatNumbers[index], price: block.price };
}

/**
 * Free seats that `mine` leaves alone: free, beside a seat of mine, with no free seat on the other side. Where the run
 * was a single seat before, nothing of ours strands it.
 */
export function strandedBy(map, states, mine) {
  const found = new Set();
  for (const index of mine) {
    const row = map.rows[map.rowOf[index]];
    const isFree = (seat) => seat >= row.first && seat < row.first + row.count && states[seat] === AVAILABLE && !mine.has(seat);
    for (const side of [-1, 1]) {
      const neighbour = index + side;
      if (isFree(neighbour) && !isFree(neighbour + side) && !found.has(neighbour)) found.add(neighbour);
    }
  }
  return [...found];
}
