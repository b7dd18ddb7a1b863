// SPDX-License-Identifier: Apache-2.0
// Looks into a database with the sqlite3 command line tool, read-only unless told otherwise, so that a test does not have
// to believe the server about its own store.

import { spawnSync } from 'node:child_process';

function runTool(args, sql) {
  const result = spawnSync('sqlite3', args, { input: sql, encoding: 'utf8', timeout: 30000, maxBuffer: 64 * 1024 * 1024 });
  if (result.error) throw result.error;
  if (result.status !== 0) throw new Error(`sqlite3: ${result.stderr}`);
  return result.stdout.split('\n').filter((line) => line.length > 0).map((line) => line.split('|'));
}

/** Rows as arrays of strings. */
export const sqlite = (database, sql) => runTool(['-readonly', '-batch', '-noheader', database], `.timeout 10000\n${sql};\n`);

/** Changes a database that no server has open. */
export const sqliteWrite = (database, sql) => runTool(['-batch', '-noheader', database], `.timeout 10000\n${sql};\n`);
