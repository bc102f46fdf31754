import { readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';

const PAGE = 'docs/explanation/threat-model.md';

/** A row of a table with a column `tested in`. */
interface TestedRow {
  readonly attack: string;
  /** Paths from the root of the repository. */
  readonly tests: readonly string[];
}

function testedRows(text: string): TestedRow[] {
  const rows: TestedRow[] = [];
  let column: number | undefined;
  for (const line of text.split('\n')) {
    const cells = line.split('|').map((cell) => cell.trim());
    if (!line.startsWith('|')) column = undefined;
    else if (cells.includes('tested in')) column = cells.indexOf('tested in');
    else if (column !== undefined && !line.startsWith('|---')) {
      const links = [...(cells[column] ?? '').matchAll(/\]\(([^)]+\.test\.ts)\)/g)];
      const tests = links.map(([, target = '']) => join(dirname(PAGE), target));
      rows.push({ attack: cells[1] ?? '', tests });
    }
  }
  return rows;
}

describe('the threat model', () => {
  const rows = testedRows(readFileSync(PAGE, 'utf8'));

  it('names a test for each attack and fault (BD-1)', () => {
    expect(rows.length).toBeGreaterThan(20);
    expect(rows.filter(({ tests }) => tests.length === 0)).toEqual([]);
  });

  it('names tests that exist and have a title with the id of a requirement (BD-1)', () => {
    const unlinked = rows.flatMap(({ tests }) => tests).filter((test) => !namesRequirement(test));
    expect(unlinked).toEqual([]);
  });
});

/** Whether a test file exists and has a title with the id of a requirement. */
function namesRequirement(file: string): boolean {
  if (statSync(file, { throwIfNoEntry: false })?.isFile() !== true) return false;
  return /\((?:[A-Z]{2,3}-\d+(?:, )?)+\)/.test(readFileSync(file, 'utf8'));
}
