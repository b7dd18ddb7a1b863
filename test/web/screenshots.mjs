// SPDX-License-Identifier: Apache-2.0
// `make screenshots`: the pictures in docs/images, taken from a demo that is started for them. They are pictures of what
// is there; nothing is arranged but the windows' sizes.
//
// With LOOK=FOLDER every page is taken instead, at 360 px, 1280 px and 4K, light and dark, into that folder: for looking
// at, before a change of the web app lands.
import { mkdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { pause } from '../lib/wait.mjs';
import { goHome, Person, startDemo } from './lib/app.mjs';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const out = process.env.LOOK ?? join(root, 'docs/images');
const WARM_UP_MS = Number(process.env.WARM_UP_MS ?? 60000); // the simulated buyers need a while to fill the hall
const CHARTS_MS = 20000; // for charts with something in them
const TOAST_MS = 7000; // until a message has gone
const SIZES = [
  { name: 'phone', width: 360, height: 740, touch: true, deviceScaleFactor: 2 },
  { name: 'desktop', width: 1280, height: 800 },
  { name: '4k', width: 3840, height: 2160 },
];
const IN_DOCS = [
  'map-desktop-light', 'map-desktop-dark', 'seats-desktop-light', 'checkout-desktop-light', 'office-desktop-dark', 'operator-desktop-dark',
];

async function shot(person, what, size, scheme) {
  const name = `${what}-${size.name}-${scheme}`;
  if (process.env.LOOK || IN_DOCS.includes(name)) await person.page.screenshot({ path: join(out, `${name}.png`) });
}

async function buyersWay(url, size, scheme) {
  const person = await Person.arrive(url, { ...size, scheme });
  const take = (what) => shot(person, what, size, scheme);
  await person.see(person.page.getByRole('link', { name: /Choose seats/ }));
  await take('events');
  await person.page.getByRole('link', { name: /Choose seats/ }).first().click();
  await person.mapReady();
  await pause(1500);
  await take('map');
  await person.cart().getByRole('button', { name: 'Best available' }).click();
  const dialog = person.page.getByRole('dialog');
  await dialog.getByLabel('Where').selectOption('B');
  await take('best');
  await dialog.getByRole('button', { name: 'Hold 2 seats' }).click();
  await dialog.waitFor({ state: 'hidden' });
  await pause(TOAST_MS);
  await take('seats');
  await person.page.getByRole('button', { name: 'List' }).click();
  await person.see(person.page.getByLabel('Block'));
  await take('list');
  await person.cart().getByRole('button', { name: /^Check out/ }).click();
  await person.see(person.page.getByRole('button', { name: /^Pay/ }));
  await take('checkout');
  await person.page.getByRole('button', { name: /^Pay/ }).click();
  await person.see(person.page.getByRole('heading', { name: 'Enjoy the show!' }));
  await take('tickets');
  await person.go('/tickets');
  await person.see(person.page.getByRole('link', { name: /Paid/ }));
  await take('orders');
  await person.context.close();
}

async function office(url, size, scheme) {
  const person = await Person.arrive(url, { ...size, scheme, path: '/office' });
  const take = (what) => shot(person, what, size, scheme);
  await person.see(person.page.locator('a.card'));
  await take('office-events');
  await person.page.locator('a.card').first().click();
  await person.see(person.page.locator('.uplot'));
  await pause(CHARTS_MS);
  await take('office');
  await person.page.mouse.wheel(0, 2000);
  await pause(300);
  await take('office-below');
  await person.page.getByRole('link', { name: 'Seats', exact: true }).click();
  await person.mapReady();
  await pause(800);
  await take('operator');
  const held = await person.page.evaluate(() => document.querySelector('canvas[role="application"]').mapView.source.states.indexOf(1));
  await person.tapSeat(held);
  await person.reads('History');
  await take('seat');
  await person.page.getByRole('link', { name: 'Set-up' }).click();
  await person.see(person.page.locator('.preview canvas'));
  await take('setup');
  await person.page.mouse.wheel(0, 4000);
  await pause(300);
  await take('setup-below');
  await person.page.getByRole('link', { name: 'Analytics' }).click();
  await person.see(person.page.locator('table'));
  await take('analytics');
  await person.context.close();
}

mkdirSync(out, { recursive: true });
const demo = await startDemo();
try {
  await pause(WARM_UP_MS);
  const work = [];
  for (const size of SIZES) {
    if (!process.env.LOOK && size.name !== 'desktop') continue;
    for (const scheme of ['light', 'dark']) work.push(() => buyersWay(demo.url, size, scheme), () => office(demo.url, size, scheme));
  }
  while (work.length > 0) await Promise.all(work.splice(0, 2).map((one) => one()));
  console.log(`pictures in ${out}`);
} finally {
  await goHome();
  await demo.stop();
}
