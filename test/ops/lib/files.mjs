// SPDX-License-Identifier: Apache-2.0
// The files operators are given, and the tools that judge them.

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { parseYaml } from './yaml.mjs';

export const root = resolve(fileURLToPath(import.meta.url), '../../../..');
export const path = (name) => resolve(root, name);
export const read = (name) => readFileSync(path(name), 'utf8');
export const readYaml = (name) => parseYaml(read(name), name);

/** {status, output}. A tool that is missing is a failure: packages.txt has it. */
export function tool(command, args, options = {}) {
  const result = spawnSync(command, args, { encoding: 'utf8', timeout: 120000, ...options });
  if (result.error) throw new Error(`${command}: ${result.error.message} (is it installed? packages.txt has it)`);
  return { status: result.status, output: result.stdout + result.stderr };
}

/** All alerts, in order. */
export const alerts = () => readYaml('ops/prometheus/alerts.yml').groups.flatMap((group) => group.rules);

/** Anchors of a page's headings, as GitHub makes them. */
export const anchorsOf = (markdown) =>
  new Set([...markdown.matchAll(/^#+ +(.*)$/gm)].map(([, title]) => title.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, '').replaceAll(' ', '-')));
