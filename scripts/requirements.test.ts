import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { projectsOfCi, renderRequirements, testFilesOfCi, titlesOf } from './requirements.ts';

const PAGE = readFileSync('docs/reference/requirements.md', 'utf8');
/** Number of requirements in each section. */
const SECTIONS = {
  SUP: 9,
  SB: 9,
  EM: 10,
  TG: 9,
  SV: 10,
  AG: 10,
  RT: 4,
  HK: 3,
  SYS: 6,
  AP: 6,
  BD: 6,
  PE: 4,
  CO: 2,
};

const read = () =>
  titlesOf(testFilesOfCi().map((file) => ({ file, text: readFileSync(file, 'utf8') })));

describe('the list of requirements', () => {
  it('defines every id once, without gaps in a section', () => {
    const ids = [...PAGE.matchAll(/^### (\S+)$/gm)].map(([, id]) => id);
    const expected = Object.entries(SECTIONS).flatMap(([section, count]) =>
      Array.from({ length: count }, (_, index) => `${section}-${index + 1}`),
    );
    expect(ids.toSorted()).toEqual(expected.toSorted());
  });

  it('has a test in CI or a line `Missing:` for each id', () => {
    const list = renderRequirements(PAGE, read());
    expect(list.unknown).toEqual([]);
    expect(list.unexplained).toEqual([]);
  });

  it('takes titles only from test files that CI runs', () => {
    const files = testFilesOfCi();
    expect(files).toContain('scripts/requirements.test.ts');
    expect(files).toContain('test/e2e/halt.test.ts');
    expect(files).toContain('test/load/run-cost.test.ts');
    expect(files).toContain('test/chaos/chaos.test.ts');
    expect(files.filter((file) => file.includes('node_modules'))).toEqual([]);
    const scripts = { test: 'vitest run --project tests', load: 'vitest run --project load' };
    expect(projectsOfCi('npm test 2>&1 | tee log\n', scripts)).toEqual(['tests']);
    expect(projectsOfCi('npm run -s load || failed=1\n', scripts)).toEqual(['load']);
  });

  it('is based on test files without skipped, focused or todo tests', () => {
    const pattern = /\b(?:it|test|describe)\.(?:skip|only|todo)\(/;
    const found = testFilesOfCi().filter((file) => pattern.test(readFileSync(file, 'utf8')));
    expect(found).toEqual([]);
  });

  it('marks a requirement as PARTIAL or MISSING with the gap', () => {
    const page = `### SUP-1\nOne.\n\nMissing: a part.\n\n### SUP-2\nTwo.\n\nMissing: all of it.\n\n### SUP-3\nThree.\n`;
    const text = `${'it'}('does one (SUP-1)')\n${'it'}.each([f(1)])('does three: %s (SUP-3)')`;
    const list = renderRequirements(page, titlesOf([{ file: 'a.test.ts', text }]));
    expect(list.text).toBe(
      [
        '### SUP-1\nOne.\n\nPARTIAL: a part.\n\n- a.test.ts: does one (SUP-1)\n',
        '### SUP-2\nTwo.\n\nMISSING: all of it.\n\n',
        '### SUP-3\nThree.\n\n- a.test.ts: does three: %s (SUP-3)\n',
      ].join('\n'),
    );
  });
});
