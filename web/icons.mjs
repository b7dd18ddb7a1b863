// SPDX-License-Identifier: Apache-2.0
// `node web/icons.mjs`: draws the PNG icons in web/public from icon.svg, with Chromium. They are committed, so that a
// build needs no browser; run it again when the icon changes.
//
// An icon for masks fills its square and keeps its sign in the middle four fifths, which no mask cuts; iOS rounds the
// corners itself, so its icon fills the square too.
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

import { chromium } from 'playwright-core';

const folder = new URL('./public/', import.meta.url);
const svg = readFileSync(new URL('icon.svg', folder), 'utf8');
const BACK = /fill="(#[0-9a-f]+)"/.exec(svg)[1];
const ICONS = [
  { name: 'icon-192.png', size: 192 },
  { name: 'icon-512.png', size: 512 },
  { name: 'icon-maskable-512.png', size: 512, full: true, share: 0.8 },
  { name: 'apple-touch-icon.png', size: 180, full: true, share: 0.92 },
];

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args: ['--headless=new', '--no-sandbox', '--disable-gpu', '--force-color-profile=srgb'] });
for (const { name, size, full = false, share = 1 } of ICONS) {
  const page = await browser.newPage({ viewport: { width: size, height: size } });
  await page.setContent(`<style>html, body { margin: 0; height: 100%; ${full ? `background: ${BACK};` : ''} display: grid; place-items: center; } svg { width: ${share * 100}%; }</style>${svg}`);
  await page.screenshot({ path: fileURLToPath(new URL(name, folder)), omitBackground: true });
  await page.close();
}
await browser.close();
