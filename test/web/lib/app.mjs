// SPDX-License-Identifier: Apache-2.0
// A real browser on the web app. Everything a test does goes through what a person has: the mouse, the keys, the page's
// words. Only the place of a seat on the canvas is asked of the map itself.
//
// Pages keep their Content-Security-Policy, so conditions are looked at from outside, one question at a time.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';

import { binary, childEnv } from '../../lib/server.mjs';
import { waitFor } from '../../lib/wait.mjs';

const require = createRequire(fileURLToPath(new URL('../../../web/package.json', import.meta.url)));
const { chromium } = require('playwright-core');
export const axeSource = () => require('axe-core').source;

// What is switched off. First what costs more than the pages themselves: the address bar's lists, two pages of their own
// in every window, which nobody sees here. Then what Playwright switches off for a page to do the same thing every time,
// because the browser hears only one such list, the last.
const WITHOUT = [
  'WebUIOmniboxPopup', 'WebUIOmniboxAimPopup', 'WebUIOmniboxFullPopup',
  'AcceptCHFrame', 'AutoExpandDetailsElement', 'AvoidUnnecessaryBeforeUnloadCheckSync', 'DeferRendererTasksAfterInput',
  'DestroyProfileOnBrowserClose', 'GlobalMediaControls', 'HttpsUpgrades', 'LazyFrameLoading', 'LensOverlay', 'MediaRouter',
  'PaintHolding', 'ThirdPartyStoragePartitioning', 'Translate',
];

export const ARGUMENTS = [
  `--disable-features=${WITHOUT}`,
  '--headless=new', '--no-sandbox', '--disable-gpu', '--disable-background-networking', '--disable-component-update',
  '--disable-default-apps', '--disable-sync', '--no-first-run', '--disable-dev-shm-usage', '--force-color-profile=srgb',
];

let browser; // a promise

/** One browser for a file, however many people come at once. */
export function launch() {
  browser ??= chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ARGUMENTS });
  return browser;
}

/** The demo with its simulated buyers, on a port of its own. */
export async function startDemo() {
  const child = spawn(binary, ['demo', '--listen', '127.0.0.1:0'], { env: childEnv(), stdio: ['ignore', 'pipe', 'pipe'] });
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  let text = '';
  child.stdout.setEncoding('utf8').on('data', (part) => (text += part));
  child.stderr.setEncoding('utf8').on('data', (part) => (text += part));
  const url = await waitFor('the demo to listen', () => /http:\/\/127\.0\.0\.1:\d+/.exec(text)?.[0]);
  const stop = async () => {
    const ended = once(child, 'exit');
    child.kill('SIGTERM');
    await ended;
    process.removeListener('exit', kill);
  };
  return { url, stop };
}

/** Ends the browser; each file does so when its tests are over. */
export async function goHome() {
  await (await browser)?.close();
  browser = undefined;
}

/** A person with a browser of their own, at the app. What the page complains about is kept in `complaints`. */
export class Person {
  static async arrive(url, { path = '/', token, width = 1280, height = 800, scheme = 'light', touch = false, prepare, ...rest } = {}) {
    const context = await (await launch()).newContext({ viewport: { width, height }, colorScheme: scheme, hasTouch: touch, reducedMotion: 'reduce', ...rest });
    const person = new Person();
    Object.assign(person, { context, url, complaints: [], requests: [] });
    if (prepare) await context.addInitScript(prepare); // runs before the page's own scripts
    person.page = await person.newPage();
    await person.page.goto(token ? `${url}/#token=${token}` : `${url}/`);
    if (path !== '/') {
      await person.see(person.page.getByRole('heading', { level: 1 }));
      await person.go(path);
    }
    return person;
  }

  async newPage() {
    const page = await this.context.newPage();
    page.setDefaultTimeout(60000);
    page.on('pageerror', (error) => this.complaints.push(error.message));
    page.on('console', (message) => message.type() === 'error' && this.complaints.push(message.text()));
    page.on('request', (request) => this.requests.push(request.url()));
    return page;
  }

  go(path) {
    return this.page.evaluate((where) => { location.hash = where; }, path);
  }

  see(locator) {
    return locator.first().waitFor({ state: 'visible' });
  }

  /** Waits until the page's text has this in it. */
  reads(words, page = this.page) {
    return waitFor(`the page to say ${words}`, async () => {
      const seen = await page.locator('body').innerText();
      return words instanceof RegExp ? words.test(seen) : seen.includes(words);
    });
  }

  async mapReady(page = this.page) {
    await waitFor('the map to have its seats', () => page.evaluate(() => {
      const view = document.querySelector('canvas[role="application"]')?.mapView;
      return Boolean(view && view.source.counts?.some((count) => count > 0));
    }));
  }

  state(index, page = this.page) {
    return page.evaluate((seat) => document.querySelector('canvas[role="application"]').mapView.source.states[seat], index);
  }

  /** Zooms to a seat and gives its place on the screen. */
  async placeOf(index, page = this.page) {
    await page.evaluate((seat) => document.querySelector('canvas[role="application"]').mapView.zoomToSeat(seat), index);
    return page.evaluate((seat) => {
      const canvas = document.querySelector('canvas[role="application"]');
      const view = canvas.mapView;
      const box = canvas.getBoundingClientRect();
      const [x, y] = view.camera.toScreen(view.map.x[seat], view.map.y[seat]);
      return { x: x + box.left, y: y + box.top };
    }, index);
  }

  async tapSeat(index) {
    const { x, y } = await this.placeOf(index);
    await this.page.mouse.click(x, y);
  }

  cart(page = this.page) {
    return page.getByRole('complementary', { name: 'Your seats' });
  }

  async holds(count, page = this.page) {
    await waitFor(`${count} seats in the cart`, async () => (await this.cart(page).getByRole('button', { name: /^Give back/ }).count()) === count);
  }

  /** Nothing went wrong in the page, and nothing was asked of anybody else. */
  leave({ expected = /status of (4\d\d|503)|ERR_(INTERNET_DISCONNECTED|CONNECTION_REFUSED|INCOMPLETE_CHUNKED|EMPTY_RESPONSE|CONNECTION_RESET|ABORTED|FAILED)/ } = {}) {
    assert.deepEqual(this.complaints.filter((text) => !expected.test(text)), []);
    const strangers = this.requests.filter((url) => !url.startsWith(this.url) && !url.startsWith('data:') && !url.startsWith('blob:'));
    assert.deepEqual(strangers, []);
    return this.context.close();
  }
}
