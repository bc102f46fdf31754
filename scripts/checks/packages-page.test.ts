import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  type PublicPackage,
  publishable,
  ROOT,
  relativeImportsOf,
} from '../packages/public-packages.ts';

const PAGE = readFileSync(join(ROOT, 'docs/reference/packages.md'), 'utf8');
const ROW = /^\| `(.+?)` \| .+? \| (.*?) ?\|$/gm;
const rows = new Map([...PAGE.matchAll(ROW)].map(([, name = '', exports = '']) => [name, exports]));
const packages = [...publishable().values()].filter(({ isForUsers }) => isForUsers);

/** Returns the source of the main module of a package and of the modules that it re-exports with `export *`. */
function entryOf({ folder, exports }: PublicPackage): string {
  const entry = exports['.'];
  if (entry === undefined) return '';
  const file = join(ROOT, folder, entry);
  const text = readFileSync(file, 'utf8');
  const whole = text.includes('export * from') ? relativeImportsOf(text) : [];
  return [text, ...whole.map((path) => readFileSync(join(file, '..', path), 'utf8'))].join('\n');
}

describe('the page of the packages', () => {
  it('lists the packages that users import, and no others (PE-3)', () => {
    expect([...rows.keys()].toSorted()).toEqual(packages.map(({ name }) => name).toSorted());
  });

  it.each(packages)('names only exports of $name (PE-3)', (published) => {
    const named = [...(rows.get(published.name) ?? '').matchAll(/`(\w+)`/g)];
    const entry = entryOf(published);
    const missing = named.map(([, name = '']) => name).filter((name) => !entry.includes(name));
    expect(missing).toEqual([]);
  });
});
