// SPDX-License-Identifier: Apache-2.0
// What changes elsewhere is followed: another hall, other prices, another policy, an event that is over; orders made on
// another device; and who may see what: an operator without an organization.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { ok } from '../lib/client.mjs';
import { start } from '../lib/server.mjs';
import { uuid } from '../lib/token.mjs';
import { waitFor } from '../lib/wait.mjs';
import { block, buy, layoutOf, World } from '../lib/world.mjs';
import { goHome, Person } from './lib/app.mjs';

const HALL = layoutOf(block('A', 1, [10, 10], { price: 4500, name: 'Stalls' }), block('B', 1, [12, 12], { price: 2500, name: 'Balcony' }));
const OTHER_HALL = layoutOf(block('Q', 7, [5, 6, 7], { price: 1234, name: 'Cellar' }));

describe('follow', () => {
  let server;
  let world;
  let organization;

  before(async () => {
    server = await start();
    world = new World(server);
    organization = await world.organization();
  });
  after(async () => {
    await goHome();
    await server.stop();
  });

  async function come(event, caller = organization.buyer(), path = `/event/${event.id}`) {
    const person = await Person.arrive(server.url, { token: caller.bearer, path });
    await person.mapReady();
    return person;
  }

  const seatCount = (person) => person.page.evaluate(() => document.querySelector('canvas[role="application"]').mapView.map.count);
  const scaleOf = (person) => person.page.evaluate(() => document.querySelector('canvas[role="application"]').mapView.camera.scale);

  test('another hall is on an open map at once, and its seats can be taken', async () => {
    const event = await organization.event({ layout: HALL });
    const person = await come(event);
    assert.equal(await seatCount(person), 44);
    ok(await organization.admin.put(`${event.adminPath}/layout`, OTHER_HALL));
    await waitFor('the new hall', async () => (await seatCount(person)) === 18);
    await person.reads(/18 free\s*of 18 seats/);
    await person.reads('€12.34');
    await event.load();
    await person.tapSeat(11);
    await person.holds(1);
    await person.reads('Cellar');
    assert.equal(await event.status(event.seats[11].seat_id), 'held');
    await event.hold(organization.buyer(), event.seats[0]);
    await waitFor('frames of the new hall', async () => (await person.state(0)) === 1);
    await person.leave();
  });

  test('a hall of the same size is another hall all the same', async () => {
    const event = await organization.event({ layout: HALL });
    const person = await come(event);
    ok(await organization.admin.put(`${event.adminPath}/layout`, HALL));
    await event.load();
    const firstSeat = () => person.page.evaluate(() => document.querySelector('canvas[role="application"]').mapView.map.seatIds[0]);
    await waitFor('the new ids', async () => (await firstSeat()) === event.seats[0].seat_id);
    await person.tapSeat(0);
    await person.holds(1);
    await person.leave();
  });

  test('a new price is on an open map, the view and what is mine stay', async () => {
    const event = await organization.event({ layout: HALL });
    const person = await come(event);
    await person.tapSeat(3);
    await person.holds(1);
    const scale = await scaleOf(person);
    const [{ block_id: id }] = ok(await organization.admin.get(event.path)).blocks;
    ok(await organization.admin.patch(`${event.adminPath}/blocks/${id}`, { price_cents: 9900 }));
    await waitFor('the legend to have the price', async () => (await person.page.locator('.legend').innerText()).includes('€99'));
    assert.equal(await scaleOf(person), scale);
    await person.holds(1);
    await person.reads('€45'); // what was agreed when it was taken
    await person.tapSeat(4);
    await person.holds(2);
    await person.reads('€144');
    await person.leave();
  });

  test('a changed policy counts at once', async () => {
    const event = await organization.event({ layout: HALL, policy: { hold_ttl_seconds: 60, hold_max_seconds: 60 } });
    const person = await come(event);
    await person.tapSeat(3);
    await person.holds(1);
    const more = person.cart().getByRole('button', { name: 'More time' });
    assert.equal(await more.isDisabled(), true);
    ok(await event.patch({ policy: { hold_max_seconds: 900 } }));
    await waitFor('more time to be offered', () => more.isEnabled());
    await person.leave();
  });

  test('an event that leaves the sale says so on the open map', async () => {
    const event = await organization.event({ layout: HALL });
    const person = await come(event);
    await person.tapSeat(3);
    await person.holds(1);
    ok(await event.patch({ status: 'cancelled' }));
    await person.see(person.page.getByRole('heading', { name: 'This event is not on sale any more.' }));
    await person.leave();
  });

  test('the operator’s selection does not outlive its hall', async () => {
    const event = await organization.event({ layout: HALL });
    const person = await come(event, organization.admin, `/office/${event.id}/map`);
    await person.tapSeat(20);
    await person.reads('1 seat selected');
    ok(await organization.admin.put(`${event.adminPath}/layout`, OTHER_HALL));
    await person.reads('0 seats selected');
    assert.equal(await seatCount(person), 18);
    await person.leave();
  });

  test('My tickets shows orders of another device, of an event that is over, and nobody else’s', async () => {
    const event = await organization.event({ layout: HALL, name: 'Bought elsewhere', status: 'live' });
    const buyer = organization.buyer();
    await buy(event, buyer, [event.seats[0], event.seats[1]]);
    await buy(event, organization.buyer(), [event.seats[2]]);
    ok(await event.patch({ status: 'archived' }));
    const person = await Person.arrive(server.url, { token: buyer.bearer, path: '/tickets' });
    const order = person.page.getByRole('link', { name: /Bought elsewhere/ });
    await person.see(order);
    assert.equal(await order.count(), 1);
    assert.match(await order.innerText(), /2 seats[\s\S]*€90[\s\S]*Paid/);
    await order.click();
    await person.see(person.page.getByRole('heading', { name: 'Enjoy the show!' }));
    assert.equal(await person.page.getByRole('heading', { name: 'Bought elsewhere' }).count(), 2, 'each ticket names its event');
    await person.leave();
  });

  test('My tickets goes back page by page', async () => {
    const event = await organization.event({ layout: layoutOf(block('A', 1, [40])), name: 'Many nights' });
    const buyer = organization.buyer();
    for (const seat of event.seats.slice(0, 33)) {
      const hold = await event.hold(buyer, seat);
      const checkout = ok(await event.checkout(buyer, { hold_ids: [hold.hold_id] }), 201);
      ok(await buyer.post(`/api/checkouts/${checkout.checkout_id}/cancel`, {}));
    }
    const person = await Person.arrive(server.url, { token: buyer.bearer, path: '/tickets' });
    const orders = person.page.getByRole('link', { name: /Many nights/ });
    await waitFor('a page of orders', async () => (await orders.count()) === 30);
    await person.page.getByRole('button', { name: 'Older orders' }).click();
    await waitFor('all orders', async () => (await orders.count()) === 33);
    await waitFor('nothing older', async () => (await person.page.getByRole('button', { name: 'Older orders' }).count()) === 0);
    await person.leave();
  });

  test('an operator without an organization runs every box office, and reads what they cannot do', async () => {
    const event = await organization.event({ layout: HALL, name: 'Operated upon' });
    const elsewhere = await world.organization();
    await elsewhere.event({ layout: HALL, name: 'Far away' });
    await event.hold(organization.buyer(), event.seats[4]);
    const person = await Person.arrive(server.url, { token: world.operator().bearer });
    await person.see(person.page.getByRole('heading', { name: 'Box office' }));
    await person.reads('Your token names no organization');
    await person.reads(elsewhere.id);
    await person.see(person.page.getByRole('link', { name: /Far away/ }));
    assert.equal(await person.page.getByRole('link', { name: 'My tickets' }).count(), 0);
    assert.equal(await person.page.getByRole('link', { name: 'New event' }).count(), 0);
    await person.page.getByRole('link', { name: /Operated upon/ }).click();
    await person.see(person.page.locator('.uplot'));
    await person.reads(/Hot tier\s+up/);
    await person.page.getByRole('link', { name: 'Seats', exact: true }).click();
    await person.mapReady();
    await person.tapSeat(4);
    await person.reads(/seat reserved/i);
    await person.page.getByRole('button', { name: 'Release' }).click();
    await person.page.getByRole('dialog').getByLabel('Note for the audit log').fill('operator was asked');
    await person.page.getByRole('dialog').getByRole('button', { name: 'Release' }).click();
    await person.reads('1 seat released.');
    assert.equal(await event.status(event.seats[4].seat_id), 'available');
    await person.go(`/event/${event.id}`);
    await person.see(person.page.locator('.uplot'));
    await person.page.reload();
    await person.see(person.page.locator('.uplot'));
    await person.leave();
  });

  test('an operator creates an organization and reads how its admin gets in', async () => {
    const person = await Person.arrive(server.url, { token: world.operator().bearer });
    await person.page.getByLabel('Name of the organization').fill('Harbour halls');
    await person.page.getByRole('button', { name: 'Create organization' }).click();
    await person.reads('Harbour halls exists now.');
    const [, id] = /--org ([0-9a-f-]{36})/.exec(await person.page.locator('main').innerText());
    ok(await world.caller('admin', id, uuid()).get('/api/admin/events'));
    await person.leave();
  });
});
