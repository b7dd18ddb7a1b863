// SPDX-License-Identifier: Apache-2.0
// A buyer's way: events, map, seats, cart, checkout, tickets; and what happens when others are faster.
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';

import { start } from '../lib/server.mjs';
import { pause, waitFor } from '../lib/wait.mjs';
import { block, buy, layoutOf, World } from '../lib/world.mjs';
import { goHome, Person } from './lib/app.mjs';

const HALL = layoutOf(block('A', 1, [10, 10], { price: 4500, name: 'Stalls' }), block('B', 1, [12, 12], { price: 2500, name: 'Balcony' }));

describe('buyer', () => {
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

  async function come(event, options = {}) {
    const buyer = options.buyer ?? organization.buyer();
    const person = await Person.arrive(server.url, { token: buyer.bearer, path: `/event/${event.id}`, ...options });
    await person.mapReady();
    return Object.assign(person, { buyer });
  }

  test('serve asks for a token, and a token opens the events', async () => {
    const event = await organization.event({ layout: HALL, name: 'Sign-in night' });
    const person = await Person.arrive(server.url);
    await person.see(person.page.getByRole('heading', { name: 'Sign in' }));
    await person.page.getByLabel('Token').fill('not a token');
    await person.page.getByRole('button', { name: 'Sign in' }).click();
    await person.reads('This is not a token');
    await person.page.getByLabel('Token').fill(organization.buyer().bearer);
    await person.page.getByRole('button', { name: 'Sign in' }).click();
    await person.page.getByRole('link', { name: /Sign-in night/ }).click();
    await person.mapReady();
    assert.ok(person.page.url().includes(event.id));
    await person.leave();
  });

  test('a tapped seat is mine at once, for everybody, and survives a reload', async () => {
    const event = await organization.event({ layout: HALL });
    const person = await come(event);
    await person.tapSeat(3);
    await person.holds(1);
    await person.reads('Row 1 · Seat 4');
    assert.equal(await event.status(event.seats[3].seat_id), 'held');
    await person.tapSeat(4);
    await person.holds(2);
    await person.page.reload();
    await person.mapReady();
    await person.holds(2);
    await person.reads('€90');
    await person.leave();
  });

  test('a second tab shows the same cart and follows the first', async () => {
    const event = await organization.event({ layout: HALL });
    const person = await come(event);
    const second = await person.newPage();
    await second.goto(`${server.url}/#/event/${event.id}`);
    await person.mapReady(second);
    await person.tapSeat(2);
    await person.holds(1);
    await person.holds(1, second);
    await second.bringToFront();
    await person.cart(second).getByRole('button', { name: /^Give back/ }).click();
    await person.holds(0);
    assert.equal(await waitFor('the seat to be free', async () => (await event.status(event.seats[2].seat_id)) === 'available'), true);
    await person.leave();
  });

  test('a tap shows before the server has answered, and a refusal takes it back with the reason', async () => {
    const event = await organization.event({ layout: HALL });
    const person = await come(event);
    const holding = new Promise((arrived) => person.page.route('**/reserve', async (route) => {
      arrived();
      await answered;
      await route.continue();
    }));
    let answer;
    const answered = new Promise((done) => (answer = done));
    await person.tapSeat(6);
    await holding;
    await person.reads('Holding…');
    assert.equal(await event.status(event.seats[6].seat_id), 'available', 'the server has not heard of it yet');
    await event.hold(organization.buyer(), event.seats[6]);
    answer();
    await person.reads(/Row 1 · Seat 7: Someone else is holding this seat/);
    await waitFor('the tap to be taken back', async () => !(await person.cart().innerText()).includes('Holding…'));
    await person.holds(0);
    await person.leave();
  });

  test('a list of holds that was on its way before a tap does not take the seat back', async () => {
    const event = await organization.event({ layout: HALL });
    const person = await come(event);
    await person.tapSeat(0);
    await person.holds(1);
    let deliver, isFirst = true;
    const delivered = new Promise((done) => (deliver = done));
    // Not `times: 1`: the browser would stop to ask us just when the next reading begins, and may forget that one.
    const old = new Promise((asked) => person.page.route('**/api/holds', async (route) => {
      if (!isFirst) return route.continue();
      isFirst = false;
      const response = await route.fetch(); // knows of one seat
      asked();
      await delivered;
      await route.fulfill({ response });
    }));
    await person.page.evaluate(() => document.dispatchEvent(new Event('visibilitychange')));
    await old;
    await person.tapSeat(1);
    await person.holds(2);
    let answers = 0;
    person.page.on('response', (response) => (answers += response.url().endsWith('/api/holds')));
    deliver();
    await waitFor('another reading, rather than belief in the old one', () => answers >= 2);
    await person.holds(2);
    await person.leave();
  });

  test('sections come first; near, seats tell block, row, number and price under the pointer; the legend names what is drawn', async () => {
    const blocks = ['A', 'B', 'C'].flatMap((section) => [1, 2, 3].map((part) => block(section, part, Array(30).fill(40), { price: 1000 * part, name: `Section ${section}${part}` })));
    const event = await organization.event({ layout: layoutOf(...blocks) });
    const person = await come(event);
    await person.reads('Choose a section');
    const middle = await person.page.evaluate(() => {
      const canvas = document.querySelector('canvas[role="application"]');
      const { camera, map } = canvas.mapView;
      const box = canvas.getBoundingClientRect();
      const [x, y] = camera.toScreen(map.blocks[4].cx, map.blocks[4].cy);
      return { x: x + box.left, y: y + box.top };
    });
    await person.page.mouse.move(middle.x, middle.y);
    await person.reads(/Section B2\s+€20\s+1,200 free/);
    await person.page.mouse.click(middle.x, middle.y);
    await person.reads('Choose your seats');
    const { x, y } = await person.placeOf(4801);
    await person.page.mouse.move(x, y);
    await person.reads(/Section B2\s+Row 1 · Seat 2\s+€20\s+free/);
    assert.match(await person.page.locator('.legend').innerText(), /€10[\s\S]*€20[\s\S]*€30[\s\S]*Yours[\s\S]*Held by others[\s\S]*Sold[\s\S]*Not for sale/);
    await person.page.getByRole('button', { name: 'Whole hall' }).click();
    await person.reads('Choose a section');
    await person.leave();
  });

  test('an open page without news asks for nothing: it never polls', async () => {
    const event = await organization.event({ layout: HALL });
    const person = await come(event);
    await person.reads('Live');
    await person.tapSeat(0);
    await person.holds(1);
    const before = person.requests.length;
    await pause(4000);
    assert.deepEqual(person.requests.slice(before), []);
    await person.leave();
  });

  test('two buyers race for one seat: one has it, the other reads why not and for how long', async () => {
    const event = await organization.event({ layout: HALL });
    const [one, two] = [await come(event), await come(event)];
    const places = await Promise.all([one.placeOf(5), two.placeOf(5)]);
    await Promise.all([one.page.mouse.click(places[0].x, places[0].y), two.page.mouse.click(places[1].x, places[1].y)]);
    const counts = async () => Promise.all([one, two].map((person) => person.cart().getByRole('button', { name: /^Give back/ }).count()));
    await waitFor('exactly one of them to hold it', async () => (await counts()).reduce((sum, count) => sum + count) === 1);
    const loser = (await counts())[0] === 1 ? two : one;
    await loser.reads(/Someone else is holding this seat, free again in at most [45]:\d\d|Someone was a moment faster/);
    await loser.holds(0);
    await one.leave();
    await two.leave();
  });

  test('a seat that somebody holds is refused in plain words, with the time', async () => {
    const event = await organization.event({ layout: HALL, policy: { hold_ttl_seconds: 260 } });
    await event.hold(organization.buyer(), event.seats[7]);
    const person = await come(event);
    assert.equal(await person.state(7), 1);
    await person.tapSeat(7);
    await person.reads(/Someone else is holding this seat, free again in at most 4:\d\d/);
    await person.leave();
  });

  test('what others do appears by itself', async () => {
    const event = await organization.event({ layout: HALL });
    const person = await come(event);
    const stranger = organization.buyer();
    const began = Date.now();
    const hold = await event.hold(stranger, event.seats[0]);
    await waitFor('the seat to be held on the map', async () => (await person.state(0)) === 1, 20000, 5);
    console.log(`# another buyer's hold was on the map ${Date.now() - began} ms after it was asked for`);
    await stranger.del(`/api/holds/${hold.hold_id}`);
    await waitFor('the seat to be free on the map', async () => (await person.state(0)) === 0);
    await buy(event, stranger, [event.seats[1]]);
    await waitFor('the seat to be sold on the map', async () => (await person.state(1)) === 2);
    await person.leave();
  });

  test('best available holds seats side by side', async () => {
    const event = await organization.event({ layout: HALL });
    const person = await come(event);
    await person.cart().getByRole('button', { name: 'Best available' }).click();
    const dialog = person.page.getByRole('dialog');
    await dialog.getByRole('button', { name: 'One more' }).click();
    await dialog.getByLabel('Where').selectOption('B');
    await dialog.getByRole('button', { name: 'Hold 3 seats' }).click();
    await person.holds(3);
    await person.reads('3 seats are yours, side by side.');
    await person.reads('Balcony');
    await person.leave();
  });

  test('a single seat left alone is warned about and can be taken too', async () => {
    const event = await organization.event({ layout: HALL });
    const person = await come(event);
    await person.tapSeat(1);
    await person.holds(1);
    await person.reads('Seat 1 in row 1 would be left alone.');
    await person.page.getByRole('button', { name: 'Take it too' }).click();
    await person.holds(2);
    await waitFor('the warning to be gone', async () => !(await person.page.locator('body').innerText()).includes('left alone'));
    await person.leave();
  });

  test('the keyboard alone is enough', async () => {
    const event = await organization.event({ layout: HALL });
    const person = await come(event);
    const { page } = person;
    await page.locator('canvas[role="application"]').focus();
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('ArrowDown');
    await waitFor('what is focused to be said', async () => /row .*seat|free/.test(await page.locator('.frame [aria-live]').innerText()));
    await page.keyboard.press('Enter');
    await person.holds(1);
    await page.keyboard.press('Enter');
    await person.holds(0);
    const camera = () => page.evaluate(() => {
      const { x, scale } = document.querySelector('canvas[role="application"]').mapView.camera;
      return { x, scale };
    });
    const before = await camera();
    await page.keyboard.press('+');
    await waitFor('plus to zoom in', async () => (await camera()).scale > before.scale);
    await page.keyboard.press('Shift+ArrowRight');
    await waitFor('shift and an arrow to move the view', async () => (await camera()).x > before.x);
    await page.keyboard.press('Home');
    await waitFor('Home to show the whole hall', async () => (await camera()).scale <= before.scale);
    await person.leave();
  });

  test('the list of seats does what the map does', async () => {
    const event = await organization.event({ layout: HALL });
    const person = await come(event);
    await person.page.getByRole('button', { name: 'List' }).click();
    await person.page.getByLabel('Block').selectOption({ index: 1 });
    const seat = person.page.getByRole('button', { name: /^Seat 6, row 2/ });
    await seat.click();
    await person.holds(1);
    await waitFor('the seat to be pressed', async () => (await seat.getAttribute('aria-pressed')) === 'true');
    await seat.click();
    await person.holds(0);
    await person.leave();
  });

  test('the list shows every seat of the map, in the same state', async () => {
    const event = await organization.event({ layout: HALL });
    await event.hold(organization.buyer(), event.seats[2]);
    await buy(event, organization.buyer(), [event.seats[5]]);
    await organization.admin.post(`${event.adminPath}/seats/block`, { seat_ids: [event.seats[9].seat_id] });
    const person = await come(event);
    await person.tapSeat(0);
    await person.holds(1);
    const words = { available: 'free', held: 'held by someone', sold: 'sold', blocked: 'not for sale' };
    const expected = (await event.list()).map((seat, i) => `Seat ${seat.seat_number}, row ${seat.row}, ${seat.block === 'A-1' ? '€45' : '€25'}, ${i === 0 ? 'yours' : words[seat.status]}`);
    await person.page.getByRole('button', { name: 'List' }).click();
    await person.page.getByLabel('Only free seats').uncheck();
    const shown = [];
    for (const option of ['A-1', 'B-1']) {
      const select = person.page.getByLabel('Block');
      const value = await select.locator('option', { hasText: option }).getAttribute('value');
      await select.selectOption(value);
      shown.push(...(await person.page.locator('button.seat').evaluateAll((buttons) => buttons.map((button) => button.getAttribute('aria-label')))));
    }
    assert.deepEqual(shown, expected);
    assert.equal(await person.page.locator('button.seat:disabled').count(), 0, 'all of B-1 is free');
    const held = await event.hold(organization.buyer(), event.seats[20]);
    await person.see(person.page.getByRole('button', { name: 'Seat 1, row 1, €25, held by someone' }));
    assert.ok(held);
    await person.leave();
  });

  async function toCheckout(event, seats) {
    const person = await come(event);
    for (const seat of seats) await person.tapSeat(seat);
    await person.holds(seats.length);
    await person.cart().getByRole('button', { name: /^Check out/ }).click();
    await person.see(person.page.getByRole('heading', { name: 'Checkout' }));
    await person.see(person.page.getByRole('timer'));
    return person;
  }

  test('paying gives tickets with a code to show and to print, and My tickets keeps them', async () => {
    const event = await organization.event({ layout: HALL, name: 'Ticket night' });
    const person = await toCheckout(event, [0, 1]);
    await person.page.getByRole('button', { name: 'Pay €90' }).click();
    await person.see(person.page.getByRole('heading', { name: 'Enjoy the show!' }));
    assert.equal(await person.page.getByRole('img', { name: 'QR code of the ticket' }).count(), 2);
    assert.equal(await event.status(event.seats[0].seat_id), 'sold');
    await person.page.emulateMedia({ media: 'print', colorScheme: 'dark' });
    assert.equal(await person.page.getByRole('banner').isVisible(), false, 'the header stays off the paper');
    assert.equal(await person.page.getByRole('button', { name: 'Print' }).isVisible(), false);
    assert.equal(await person.page.getByRole('img', { name: 'QR code of the ticket' }).first().isVisible(), true);
    assert.equal(await person.page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor), 'rgb(255, 255, 255)');
    const pdf = await person.page.pdf({ format: 'A4' });
    assert.ok(pdf.length > 5000);
    await person.page.emulateMedia({ media: null, colorScheme: null });
    await person.page.getByRole('link', { name: 'My tickets' }).click();
    await person.page.getByRole('link', { name: /Ticket night/ }).click();
    await person.see(person.page.getByRole('heading', { name: 'Enjoy the show!' }));
    await person.leave();
  });

  test('a declined card is explained, and the seats can be taken again', async () => {
    const event = await organization.event({ layout: HALL });
    const person = await toCheckout(event, [10, 11]);
    await person.page.getByLabel('Declined card').check();
    await person.page.getByRole('button', { name: /^Pay/ }).click();
    await person.reads('Your card was declined');
    await person.reads('Nothing was charged');
    await person.page.getByRole('button', { name: 'Take these seats again' }).click();
    await person.mapReady();
    await person.holds(2);
    await person.leave();
  });

  test('a slow bank is waited for', async () => {
    const event = await organization.event({ layout: HALL });
    const person = await toCheckout(event, [12]);
    await person.page.getByLabel('Slow bank').check();
    await person.page.getByRole('button', { name: /^Pay/ }).click();
    await person.see(person.page.getByRole('heading', { name: 'Enjoy the show!' }));
    await person.leave();
  });

  test('a silent bank is asked again until the outcome is known', async () => {
    const event = await organization.event({ layout: HALL });
    const person = await toCheckout(event, [13]);
    await person.page.getByLabel('Silent bank').check();
    await person.page.getByRole('button', { name: /^Pay/ }).click();
    await person.reads('Your bank has not answered yet');
    await person.page.getByRole('heading', { name: 'Enjoy the show!' }).waitFor({ timeout: 60000 });
    await person.leave();
  });

  test('a checkout can be cancelled, and the seats are free again', async () => {
    const event = await organization.event({ layout: HALL });
    const person = await toCheckout(event, [14]);
    await person.page.getByRole('button', { name: 'Cancel and give the seats back' }).click();
    await person.page.getByRole('dialog').getByRole('button', { name: 'Give them back' }).click();
    await person.mapReady();
    await person.holds(0);
    assert.equal(await event.status(event.seats[14].seat_id), 'available');
    await person.leave();
  });
});
