// SPDX-License-Identifier: Apache-2.0
// Builds web/dist, which becomes part of the binary. Every file gets a .gz beside it, so that the server compresses
// nothing itself; nothing is inlined, so that the Content-Security-Policy needs no exception.
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';

import { svelte } from '@sveltejs/vite-plugin-svelte';
import { defineConfig } from 'vite';

function filesUnder(folder) {
  return readdirSync(folder).flatMap((name) => {
    const path = join(folder, name);
    return statSync(path).isDirectory() ? filesUnder(path) : [path];
  });
}

function compress() {
  return {
    name: 'compress',
    apply: 'build',
    closeBundle() {
      for (const path of filesUnder('dist')) {
        if (/\.(png|gz)$/.test(path)) continue;
        writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 9 }));
      }
    },
  };
}

export default defineConfig({
  plugins: [svelte(), compress()],
  build: {
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  server: { proxy: { '/api': 'http://127.0.0.1:8080' } },
});
