// SPDX-License-Identifier: Apache-2.0
// Many at the same moment: a thousand users after one seat, and hundreds and thousands of connections whose answers come
// back in batches. Nothing may hang, nobody may win twice.

import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';

import { ok } from '../lib/client.mjs';
import { rawRequest, Wire } from '../lib/raw.mjs';
import { start } from '../lib/server.mjs';
import { inParallel, pause, within } from '../lib/wait.mjs';
import { block, layoutOf, metric, World } from '../lib/world.mjs';

const ANSWERS_LIMIT_MS = 120000; // to all of one round

describe('races', () => {
  let server;
  let organization;

  before(async () => {
    server = await start();
    organization = await new World(server).organization();
  });
  after(async () => {
    await server.stop();
    const proof = await server.verify();
    assert.equal(proof.status, 0, proof.stdout + proof.stderr);
  });

  const reserveBytes = (event, seat, buyer) =>
    rawRequest('POST', `${event.path}/seats/${seat.seat_id}/reserve`, { authorization: `Bearer ${buyer.bearer}`, 'content-length': 0 });

  /**
   * One answer. A command that waited two seconds is refused as overloaded, which a busy machine can bring about: then the
   * same is asked again, as the answer says, and how often is told. Any other refusal is for the test to judge.
   */
  let refused = 0;
  const ask = async (wire, bytes) => {
    for (;;) {
      const answer = await wire.exchange(bytes);
      if (answer.status !== 503 || JSON.parse(answer.text).error.code !== 'overloaded') return answer;
      refused++;
      await pause(200);
    }
  };
  after(() => refused > 0 && console.log(`# ${refused} times refused as overloaded, and asked again`));

  it('a thousand users, one seat: exactly one 201, 999 conflicts, one active row', async () => {
    const event = await organization.event({ layout: layoutOf(block('A', 1, [3])) });
    const [, seat] = event.seats;
    const wires = await inParallel(Array.from({ length: 1000 }), 100, () => Wire.open(server));
    const buyers = wires.map(() => organization.buyer());
    const answers = await within('a thousand answers', Promise.all(wires.map((wire, index) => ask(wire, reserveBytes(event, seat, buyers[index])))), ANSWERS_LIMIT_MS);
    for (const wire of wires) wire.close();
    const winners = answers.filter((answer) => answer.status === 201);
    assert.equal(winners.length, 1, 'one winner');
    const losers = answers.filter((answer) => answer.status === 409);
    assert.equal(losers.length, 999, `answers: ${JSON.stringify(answers.map((answer) => answer.status).filter((status) => status !== 409))}`);
    for (const { text } of losers) assert.equal(JSON.parse(text).error.code, 'seat_held_by_another_user');
    const listed = ok(await organization.admin.get(`${event.adminPath}/holds`));
    assert.equal(listed.length, 1);
    assert.equal(listed[0].hold_id, JSON.parse(winners[0].text).data.hold_id);
    const [[active]] = server.select("SELECT count(*) FROM seat_holds WHERE status = 'active'");
    assert.equal(Number(active), 1, 'one active row in the store');
  });

  for (const [connections, rounds] of [[256, 6], [2000, 2]]) {
    it(`${connections} connections asking at the same moment are all answered, round after round`, async () => {
      const seatCount = connections * rounds;
      const event = await organization.event({ layout: layoutOf(block('A', 1, Array(Math.ceil(seatCount / 100)).fill(100))) });
      const wires = await inParallel(Array.from({ length: connections }), 128, () => Wire.open(server));
      const buyers = wires.map(() => organization.buyer());
      for (let round = 0; round < rounds; round++) {
        const answers = await within(
          `round ${round} of ${connections}`,
          Promise.all(wires.map((wire, index) => ask(wire, reserveBytes(event, event.seats[round * connections + index], buyers[index])))),
          ANSWERS_LIMIT_MS,
        );
        const wrong = answers.filter((answer) => answer.status !== 201);
        assert.deepEqual(wrong.slice(0, 3).map((answer) => `${answer.status} ${answer.text}`), []);
      }
      for (const wire of wires) wire.close();
      assert.equal((await event.occupancy()).held, seatCount);
    });
  }

  it('exactly 128 answers at once do not stall the loop', async () => {
    const event = await organization.event({ layout: layoutOf(block('A', 1, Array(13).fill(100))) });
    const wires = await inParallel(Array.from({ length: 128 }), 128, () => Wire.open(server));
    const buyers = wires.map(() => organization.buyer());
    for (let round = 0; round < 10; round++) {
      const answers = await within(`round ${round} of 128`, Promise.all(wires.map((wire, index) =>
        ask(wire, reserveBytes(event, event.seats[round * 128 + index], buyers[index])))), ANSWERS_LIMIT_MS);
      assert.ok(answers.every((answer) => answer.status === 201));
    }
    for (const wire of wires) wire.close();
  });

  it('requests were gathered into batches', async () => {
    const commands = await metric(server, 'holdfast_batch_size_sum');
    const batches = await metric(server, 'holdfast_batch_size_count');
    assert.ok(batches > 0 && commands / batches > 1.5, `${commands} commands in ${batches} batches`);
  });
});
