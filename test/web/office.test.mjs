// SPDX-License-Identifier: Apache-2.0
// The box office: figures that move, setting up an event, the operator's map, analytics.
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';

import { start, tempDir } from '../lib/server.mjs';
import { waitFor } from '../lib/wait.mjs';
import { block, buy, layoutOf, World } from '../lib/world.mjs';
import { goHome, Person } from './lib/app.mjs';

const HALL = layoutOf(block('A', 1, [10, 10], { price: 4500, name: 'Stalls' }), block('B', 1, [12], { price: 2500, name: 'Balcony' }));

describe('office', () => {
  let server;
  let organization;

  before(async () => {
    server = await start();
    organization = await new World(server).organization();
  });
  after(async () => {
    await goHome();
    await server.stop();
  });

  const come = (path) => Person.arrive(server.url, { token: organization.admin.bearer, path });

  test('a buyer has no box office', async () => {
    const person = await Person.arrive(server.url, { token: organization.buyer().bearer, path: '/office' });
    await person.reads('needs an admin');
    assert.equal(await person.page.getByRole('link', { name: 'Box office' }).count(), 0);
    await person.leave();
  });

  test('the dashboard moves with what happens', async () => {
    const event = await organization.event({ layout: HALL });
    const person = await come(`/office/${event.id}/live`);
    await person.see(person.page.locator('.uplot'));
    const figure = (label) => person.page.locator('section[aria-label="Occupancy"] dl > div', { hasText: label }).locator('dd').innerText();
    const buyer = organization.buyer();
    await buy(event, buyer, [event.seats[0]]);
    const hold = await event.hold(buyer, event.seats[1]);
    await waitFor('one sold', async () => (await figure('sold')).startsWith('1'));
    await waitFor('one held', async () => (await figure('held')).startsWith('1'));
    await buyer.del(`/api/holds/${hold.hold_id}`);
    await waitFor('none held', async () => (await figure('held')).startsWith('0'));
    await person.reads('Releases by scenario');
    await person.reads(/Hot tier\s+up/);
    await person.reads(/Warm tier\s+none\s+Store\s+up\s+Breaker\s+none/);
    await person.reads(/Reaper\s/);
    await person.reads(/Queue\s+\d+\s+inbox \d+ · waiting \d+ · store \d+/);
    const conflicts = async () => Number(/Conflicts ([\d.]+)/.exec(await person.page.getByRole('img', { name: /^Per second/ }).getAttribute('aria-label'))?.[1] ?? 0);
    const rival = organization.buyer();
    await event.hold(rival, event.seats[3]);
    await waitFor('a conflict on the chart', async () => {
      await event.reserve(buyer, event.seats[3]);
      const sign = await event.hold(rival, event.seats[4]); // the stream's life moves the charts
      await rival.del(`/api/holds/${sign.hold_id}`);
      return (await conflicts()) > 0;
    });
    await waitFor('percentiles of the latency', async () => /p99 [\d.]+ ms/.test(await person.page.getByRole('img', { name: /^From command to answer/ }).getAttribute('aria-label')));
    assert.ok(!person.requests.some((url) => url.endsWith('/metrics')), 'an admin elsewhere may not read /metrics');
    await waitFor('the release to be counted', async () => {
      await event.hold(buyer, event.seats[2]).catch(() => {}); // a sign of life on the stream
      const row = await person.page.locator('dl > div', { hasText: 'B · Given back' }).locator('dd').innerText();
      return Number(row) >= 1;
    });
    await person.leave();
  });

  test('an event is created, given a layout by the form, published, and bought from', async () => {
    const person = await come('/office/new');
    const { page } = person;
    await page.getByLabel('Name').fill('Spring gala');
    await page.getByLabel('Hold length').fill('240');
    await page.getByRole('button', { name: 'Create event' }).click();
    await person.see(page.getByRole('heading', { name: 'Layout' }));
    await page.getByLabel('Rows').first().fill('3');
    await page.getByLabel('Seats a row').first().fill('7');
    await waitFor('the preview to follow the form', () => page.evaluate(() => document.querySelector('.preview canvas')?.mapView.map.count === 319));
    await page.getByRole('button', { name: 'Use this layout (319 seats)' }).click();
    await person.reads('The hall has 319 seats now.');
    await page.getByRole('button', { name: 'Publish' }).click();
    await person.reads('The event is published now.');
    const buyer = await Person.arrive(server.url, { token: organization.buyer().bearer });
    await buyer.page.getByRole('link', { name: /Spring gala/ }).click();
    await buyer.mapReady();
    await buyer.tapSeat(0);
    await buyer.holds(1);
    await buyer.reads('left to pay');
    await person.page.getByRole('button', { name: 'Cancel event' }).click();
    await person.page.getByRole('dialog').getByRole('button', { name: 'Cancel event' }).click();
    await person.reads('The event is cancelled now.');
    await buyer.holds(0);
    await buyer.leave();
    await person.leave();
  });

  test('sale window and policy are kept', async () => {
    const event = await organization.event({ layout: HALL });
    const person = await come(`/office/${event.id}/setup`);
    await person.page.getByLabel('Sale opens').fill('2031-05-06T10:30');
    await person.page.getByLabel('Sale ends').fill('2031-05-07T22:00');
    await person.page.getByLabel('Seats per buyer').fill('4');
    await person.page.getByLabel('Forbid single-seat gaps').check();
    await person.page.getByRole('button', { name: 'Save' }).click();
    await person.reads('Saved.');
    await person.page.reload();
    await waitFor('what was saved', async () => (await person.page.getByLabel('Seats per buyer').inputValue()) === '4');
    assert.equal(await person.page.getByLabel('Sale opens').inputValue(), '2031-05-06T10:30');
    assert.equal(await person.page.getByLabel('Forbid single-seat gaps').isChecked(), true);
    const buyer = await Person.arrive(server.url, { token: organization.buyer().bearer, path: `/event/${event.id}` });
    await buyer.mapReady();
    await buyer.tapSeat(0);
    await buyer.reads('The sale is not open at this moment.');
    await buyer.leave();
    await person.leave();
  });

  test('a layout comes from a file, and a bad file is refused in words', async () => {
    const event = await organization.event({ layout: HALL, status: 'draft' });
    const person = await come(`/office/${event.id}/setup`);
    const folder = tempDir();
    writeFileSync(join(folder, 'bad.json'), '{"rows": 3}');
    writeFileSync(join(folder, 'good.json'), JSON.stringify(layoutOf(block('Q', 1, [5, 6, 7]))));
    await person.page.getByLabel('Layout file (JSON)').setInputFiles(join(folder, 'bad.json'));
    await person.reads('This file is not a layout');
    const twice = layoutOf(block('Q', 1, [5]), block('Q', 1, [6]));
    writeFileSync(join(folder, 'twice.json'), JSON.stringify(twice));
    await person.page.getByLabel('Layout file (JSON)').setInputFiles(join(folder, 'twice.json'));
    await person.page.getByRole('button', { name: 'Use this layout (11 seats)' }).click();
    await person.reads('The server did not accept this');
    await person.page.getByLabel('Layout file (JSON)').setInputFiles(join(folder, 'good.json'));
    await person.page.getByRole('button', { name: 'Use this layout (18 seats)' }).click();
    await person.reads('The hall has 18 seats now.');
    await person.leave();
  });

  test('the operator selects by rectangle, blocks and unblocks, with a note', async () => {
    const event = await organization.event({ layout: HALL });
    const person = await come(`/office/${event.id}/map`);
    await person.mapReady();
    const box = await person.page.locator('canvas[role="application"]').boundingBox();
    await person.page.mouse.move(box.x + 5, box.y + 150);
    await person.page.mouse.down();
    await person.page.mouse.move(box.x + box.width - 5, box.y + box.height - 5, { steps: 4 });
    await person.page.mouse.up();
    await person.reads('32 seats selected');
    await person.page.getByRole('button', { name: 'Block', exact: true }).click();
    const dialog = person.page.getByRole('dialog');
    assert.equal(await dialog.getByRole('button', { name: 'Block', exact: true }).isDisabled(), true);
    await dialog.getByLabel('Note for the audit log').fill('camera platform');
    await dialog.getByRole('button', { name: 'Block', exact: true }).click();
    await person.reads('32 seats blocked.');
    await waitFor('the map to show it', async () => (await person.state(0)) === 3);
    await person.page.getByRole('button', { name: 'Unblock' }).click();
    await dialog.getByLabel('Note for the audit log').fill('no camera');
    await dialog.getByRole('button', { name: 'Unblock' }).click();
    await person.reads('32 seats unblocked.');
    await person.leave();
  });

  test('the operator sees who holds a seat until when, releases it, and reads its history', async () => {
    const event = await organization.event({ layout: HALL });
    const buyer = organization.buyer();
    await event.hold(buyer, event.seats[4]);
    const person = await come(`/office/${event.id}/map`);
    await person.mapReady();
    await person.tapSeat(4);
    await person.reads('1 seat selected');
    await person.reads(buyer.user);
    await person.reads(/[45]:\d\d left/);
    await person.reads(/seat reserved/i);
    await person.page.getByRole('button', { name: 'Release' }).click();
    await person.page.getByRole('dialog').getByLabel('Note for the audit log').fill('customer call');
    await person.page.getByRole('dialog').getByRole('button', { name: 'Release' }).click();
    await person.reads('1 seat released.');
    await person.reads(/seat released/i);
    await person.reads('Nobody holds it.');
    assert.equal(await event.status(event.seats[4].seat_id), 'available');
    await person.leave();
  });

  test('analytics tell what became of the holds', async () => {
    const event = await organization.event({ layout: HALL });
    const buyer = organization.buyer();
    await buy(event, buyer, [event.seats[0], event.seats[1], event.seats[2]]);
    const hold = await event.hold(buyer, event.seats[3]);
    await buyer.del(`/api/holds/${hold.hold_id}`);
    const person = await come(`/office/${event.id}/analytics`);
    await person.reads('75.0%');
    await person.reads('25.0%');
    const row = person.page.getByRole('region', { name: 'By block' }).getByRole('row', { name: /A-1/ });
    assert.match(await row.innerText(), /A-1 · Stalls\s+4\s+3\s+0\s+1\s+0\s+75%/);
    assert.equal(await person.page.getByRole('region', { name: 'By hour' }).getByRole('row').count(), 2);
    await person.leave();
  });
});
