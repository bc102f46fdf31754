import { expect, it } from 'vitest';
import { changedPackages } from './lock-file.ts';

const binary = { version: '1.0.0', optional: true, os: ['darwin'], cpu: ['arm64'] };

function lockFile(packages: Readonly<Record<string, unknown>>): string {
  return JSON.stringify({ lockfileVersion: 3, packages });
}

it('finds packages that were added, removed and changed', () => {
  const before = lockFile({
    '': { version: '1.0.0' },
    kept: {},
    removed: {},
    changed: { version: '1' },
  });
  const after = lockFile({
    '': { version: '1.0.1' },
    kept: {},
    changed: { version: '2' },
    added: {},
  });
  expect(changedPackages(before, after)).toEqual(['', 'removed', 'changed', 'added']);
});

it('ignores platform-specific binaries that only one file has, but reports a changed version', () => {
  const without = lockFile({ '': {} });
  const with1 = lockFile({ '': {}, binary });
  expect(changedPackages(without, with1)).toEqual([]);
  expect(changedPackages(with1, without)).toEqual([]);
  const with2 = lockFile({ '': {}, binary: { ...binary, version: '2.0.0' } });
  expect(changedPackages(with1, with2)).toEqual(['binary']);
});
