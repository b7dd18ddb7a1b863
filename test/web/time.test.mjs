// SPDX-License-Identifier: Apache-2.0
// Time and trouble in front of the user's eyes: countdown, extension, expiry, a lost line, a server that starts again.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { freePort, start } from '../lib/server.mjs';
import { waitFor } from '../lib/wait.mjs';
import { block, layoutOf, World } from '../lib/world.mjs';
import { goHome, Person } from './lib/app.mjs';

const HALL = layoutOf(block('A', 1, [10, 10], { price: 4500, name: 'Stalls' }));

describe('time', () => {
  let server;
  let organization;

  before(async () => {
    server = await start({ listen: `127.0.0.1:${await freePort()}` });
    organization = await new World(server).organization();
  });
  after(async () => {
    await goHome();
    await server.stop();
  });

  async function come(event) {
    const person = await Person.arrive(server.url, { token: organization.buyer().bearer, path: `/event/${event.id}` });
    await person.mapReady();
    return person;
  }

  test('a hold runs out before the buyer, who reads it and gets the seat again', async () => {
    const event = await organization.event({ layout: HALL, policy: { hold_ttl_seconds: 15, hold_max_seconds: 15, release_grace_seconds: 0 } });
    const person = await come(event);
    await person.tapSeat(3);
    await person.holds(1);
    const shown = await person.cart().getByRole('timer').getAttribute('aria-label');
    assert.match(shown, /^0:[01]\d left to pay$/);
    await person.reads('Your seats go back in 30 seconds');
    assert.equal(await person.cart().getByRole('button', { name: 'More time' }).isDisabled(), true);
    await person.reads('Time is up');
    await person.holds(0);
    await waitFor('the seat to be free for all', async () => (await event.status(event.seats[3].seat_id)) === 'available');
    await waitFor('the seat to be free on the map', async () => (await person.state(3)) === 0);
    await person.page.getByRole('button', { name: 'Try to get them again' }).click();
    await person.holds(1);
    await person.leave();
  });

  test('more time is given while it is allowed', async () => {
    const event = await organization.event({ layout: HALL, policy: { hold_ttl_seconds: 60, checkout_extension_seconds: 120, hold_max_seconds: 600 } });
    const person = await come(event);
    await person.tapSeat(0);
    await person.holds(1);
    await person.cart().getByRole('button', { name: 'More time' }).click();
    await waitFor('more than two minutes on the clock', async () => /^[23]:/.test(await person.cart().getByRole('timer').getAttribute('aria-label')));
    await person.leave();
  });

  test('the countdown follows the server’s clock, however wrong the device’s is', async () => {
    const event = await organization.event({ layout: HALL, policy: { hold_ttl_seconds: 600 } });
    const person = await Person.arrive(server.url, {
      token: organization.buyer().bearer,
      path: `/event/${event.id}`,
      prepare: () => {
        const real = Date.now;
        Date.now = () => real() + 3600_000;
      },
    });
    await person.mapReady();
    await person.tapSeat(0);
    await person.holds(1);
    assert.match(await person.cart().getByRole('timer').getAttribute('aria-label'), /^(10:0[01]|9:\d\d) /);
    await person.leave();
  });

  test('a checkout that runs out before the payment says so, and the seats can be taken again', async () => {
    const event = await organization.event({ layout: HALL, policy: { hold_ttl_seconds: 15, hold_max_seconds: 15, release_grace_seconds: 0 } });
    const person = await come(event);
    await person.tapSeat(7);
    await person.holds(1);
    await person.cart().getByRole('button', { name: /^Check out/ }).click();
    await person.see(person.page.getByRole('button', { name: /^Pay/ }));
    await person.reads('Your time ran out before the payment');
    await person.reads('Row 1 · Seat 8'); // what it was about
    await person.page.getByRole('button', { name: 'Take these seats again' }).click();
    await person.mapReady();
    await person.holds(1);
    await person.leave();
  });

  test('offline is said; back online the map has caught up', async () => {
    const event = await organization.event({ layout: HALL });
    const person = await come(event);
    await person.context.setOffline(true);
    await person.reads('You are offline');
    await event.hold(organization.buyer(), event.seats[9]);
    await person.context.setOffline(false);
    await person.reads('Back online');
    await waitFor('what was missed to be on the map', async () => (await person.state(9)) === 1);
    await person.leave();
  });

  test('the app opens without a network and says so', async () => {
    const event = await organization.event({ layout: HALL });
    const person = await come(event);
    await waitFor('the service worker to be in charge', () => person.page.evaluate(() => Boolean(navigator.serviceWorker.controller)));
    await person.page.reload();
    await person.mapReady();
    await person.context.setOffline(true);
    await person.page.reload();
    await person.reads('The server cannot be reached');
    await person.context.setOffline(false);
    await person.leave();
  });

  test('after the server starts again the page reconnects, and the hold is still mine', async () => {
    const event = await organization.event({ layout: HALL });
    const person = await come(event);
    await person.tapSeat(5);
    await person.holds(1);
    await server.stop();
    await person.reads('The connection is lost');
    await person.holds(1);
    server.options.listen = `127.0.0.1:${server.port}`;
    await server.launch();
    await person.reads('Back online');
    await person.holds(1);
    await event.hold(organization.buyer(), event.seats[6]);
    await waitFor('news from the new server', async () => (await person.state(6)) === 1);
    await person.leave();
  });
});
