// SPDX-License-Identifier: Apache-2.0
// The service worker keeps the shell, so that the app opens without a network and can say so. Files under /assets/
// carry a hash of their content and never change: the cache answers. The page itself comes from the network when there
// is one. Nothing under /api/ is ever kept.
const CACHE = 'holdfast-shell-1';
const SHELL = ['/', '/icon.svg', '/manifest.webmanifest'];
const ASSETS_KEPT_MAX = 60;

self.addEventListener('install', (event) => {
  event.waitUntil(caches.open(CACHE).then((cache) => cache.addAll(SHELL)).then(() => self.skipWaiting()));
});

self.addEventListener('activate', (event) => {
  event.waitUntil((async () => {
    for (const name of await caches.keys()) if (name !== CACHE) await caches.delete(name);
    await self.clients.claim();
  })());
});

async function keep(request, response) {
  const cache = await caches.open(CACHE);
  await cache.put(request, response);
  const assets = (await cache.keys()).filter((one) => new URL(one.url).pathname.startsWith('/assets/'));
  for (const old of assets.slice(0, Math.max(0, assets.length - ASSETS_KEPT_MAX))) await cache.delete(old);
}

async function assetFirst(request) {
  const kept = await caches.match(request);
  if (kept) return kept;
  const response = await fetch(request);
  if (response.ok) await keep(request, response.clone());
  return response;
}

async function networkFirst(request) {
  try {
    const response = await fetch(request);
    if (response.ok) await keep('/', response.clone());
    return response;
  } catch (error) {
    const kept = await caches.match('/');
    if (kept) return kept;
    throw error;
  }
}

self.addEventListener('fetch', (event) => {
  const url = new URL(event.request.url);
  if (event.request.method !== 'GET' || url.origin !== self.location.origin) return;
  if (url.pathname.startsWith('/assets/')) event.respondWith(assetFirst(event.request));
  else if (event.request.mode === 'navigate' && url.pathname === '/') event.respondWith(networkFirst(event.request));
});
