// SPDX-License-Identifier: Apache-2.0
// `make screenshots`: the pictures in docs/images, taken from a demo that is started for them. They are pictures of what
// is there; nothing is arranged but the windows' sizes.
import { mkdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { pause } from '../lib/wait.mjs';
import { goHome, Person, startDemo } from './lib/app.mjs';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const out = process.env.IMAGES ?? join(root, 'docs/images');
const WARM_UP_MS = Number(process.env.WARM_UP_MS ?? 60000); // the simulated buyers need a while to fill the hall
const SIZES = [
  { name: 'phone', width: 360, height: 740, touch: true, deviceScaleFactor: 2 },
  { name: 'desktop', width: 1280, height: 800 },
  { name: '4k', width: 3840, height: 2160, only: ['map', 'seats'] },
];

async function buyersWay(url, size, scheme) {
  const shot = async (person, what) => {
    if (size.only && !size.only.includes(what)) return;
    await person.page.screenshot({ path: join(out, `${what}-${size.name}-${scheme}.png`) });
  };
  const person = await Person.arrive(url, { ...size, scheme });
  await person.see(person.page.getByRole('link', { name: /Choose seats/ }));
  await shot(person, 'events');
  await person.page.getByRole('link', { name: /Choose seats/ }).first().click();
  await person.mapReady();
  await pause(1500);
  await shot(person, 'map');
  await person.cart().getByRole('button', { name: 'Best available' }).click();
  const dialog = person.page.getByRole('dialog');
  await dialog.getByLabel('Where').selectOption('B');
  await dialog.getByRole('button', { name: 'Hold 2 seats' }).click();
  await dialog.waitFor({ state: 'hidden' });
  await pause(7000); // until the message has gone
  await shot(person, 'seats');
  await person.cart().getByRole('button', { name: /^Check out/ }).click();
  await person.see(person.page.getByRole('button', { name: /^Pay/ }));
  await shot(person, 'checkout');
  await person.page.getByRole('button', { name: /^Pay/ }).click();
  await person.see(person.page.getByRole('heading', { name: 'Enjoy the show!' }));
  await shot(person, 'tickets');
  await person.context.close();
}

async function office(url, size, scheme) {
  const person = await Person.arrive(url, { ...size, scheme, path: '/office' });
  const shot = (what) => person.page.screenshot({ path: join(out, `${what}-${size.name}-${scheme}.png`) });
  await person.page.locator('a.card').first().click();
  await person.see(person.page.locator('.uplot'));
  await pause(20000); // for charts with something in them
  await shot('office');
  await person.page.getByRole('link', { name: 'Seats', exact: true }).click();
  await person.mapReady();
  await pause(800);
  await shot('operator');
  await person.page.getByRole('link', { name: 'Analytics' }).click();
  await person.see(person.page.locator('table'));
  await shot('analytics');
  await person.context.close();
}

mkdirSync(out, { recursive: true });
const demo = await startDemo();
try {
  await pause(WARM_UP_MS);
  const work = [];
  for (const size of SIZES) {
    for (const scheme of ['light', 'dark']) {
      work.push(() => buyersWay(demo.url, size, scheme));
      if (!size.only) work.push(() => office(demo.url, size, scheme));
    }
  }
  while (work.length > 0) await Promise.all(work.splice(0, 3).map((one) => one()));
  console.log(`pictures in ${out}`);
} finally {
  await goHome();
  await demo.stop();
}
