import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { withTable } from './metrics-page.ts';

it('docs/reference/metrics.md lists every metric as declared in the code (SYS-1)', () => {
  const page = readFileSync('docs/reference/metrics.md', 'utf8');
  expect(page, 'run npm run pages').toBe(withTable(page));
});
