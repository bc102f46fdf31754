import { globSync, readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { expect, it } from 'vitest';

const WRITE = /(?:insertInto|updateTable|deleteFrom)\(\s*'(\w+)'|\btable: '(\w+)'/g;

/** The tables that a file writes. */
function writtenIn(file: string): readonly string[] {
  return [...readFileSync(file, 'utf8').matchAll(WRITE)].map(([, built, deferred]) =>
    String(built ?? deferred),
  );
}

/** Whether `other` imports `file`: a writer imports the cache that it updates, a cache the writer that it calls. */
function isImported(file: string, other: string): boolean {
  return readFileSync(other, 'utf8').includes(`/${basename(file)}'`);
}

// A write in any other file would leave a stale row in the cache (ADR 13). With stale facts, for example, an agent
// could exceed a limit.
it('only the cache module, its importers and its imports write tables with cached rows (SV-3, CO-1)', () => {
  const files = globSync('{services,libs}/*/src/**/*.ts').filter(
    (file) => !file.endsWith('.test.ts'),
  );
  const caches = files.filter((file) => readFileSync(file, 'utf8').includes('new RowCache'));
  const outside = caches.flatMap((cache) => {
    const tables = new Set(writtenIn(cache));
    const folder = cache.slice(0, cache.indexOf('/src/') + 1);
    const others = files.filter((file) => file !== cache && file.startsWith(folder));
    return others
      .filter((file) => !isImported(cache, file) && !isImported(file, cache))
      .flatMap((file) => writtenIn(file).filter((table) => tables.has(table)))
      .map((table) => `${table} of ${cache}`);
  });
  expect(caches.flatMap(writtenIn)).toEqual(expect.arrayContaining(['balances', 'facts', 'runs']));
  expect(outside).toEqual([]);
});
