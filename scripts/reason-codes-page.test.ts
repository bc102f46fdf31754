import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { REASONS } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import { withTable } from './reason-codes-page.ts';

describe('the reason codes', () => {
  it('are listed in docs/reference/reason-codes.md as the code declares them (SYS-3)', () => {
    const page = readFileSync('docs/reference/reason-codes.md', 'utf8');
    expect(page, 'run npm run pages').toBe(withTable(page));
  });

  it('have a meaning and an action of one sentence each (SYS-3)', () => {
    for (const [code, { meaning, action }] of Object.entries(REASONS)) {
      expect(code).toMatch(/^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$/);
      for (const sentence of [meaning, action]) expect(sentence, code).toMatch(/^[A-Z].*[^.]\.$/);
    }
  });

  it('include every reason code that a client or service in Python raises (SYS-3)', () => {
    const files = execFileSync('git', ['ls-files', 'clients/python/*.py'], { encoding: 'utf8' });
    const raised = files
      .split('\n')
      .filter(Boolean)
      .flatMap((file) => [...readFileSync(file, 'utf8').matchAll(PYTHON_RAISE)])
      .map(([, code]) => code);
    expect(raised.length).toBeGreaterThan(20);
    for (const code of raised) expect(Object.keys(REASONS)).toContain(code);
  });

  it('are all in use (SYS-3)', () => {
    const sources = ['libs', 'services', 'clients', 'platform', 'examples'];
    const used = execFileSync(
      'git',
      ['grep', '-ohwE', '[A-Z][A-Z0-9_]+', '--', ...sources, ':!libs/kernel/src/errors/reasons.ts'],
      { encoding: 'utf8', maxBuffer: 2 ** 26 },
    );
    const words = new Set(used.split('\n'));
    expect(Object.keys(REASONS).filter((code) => !words.has(code))).toEqual([]);
  });
});

const PYTHON_RAISE =
  /(?:GatewayError\(\s*Code\.\w+,|invalid\(|denied\(|unauthenticated\()\s*"([A-Z0-9_]+)"/g;
