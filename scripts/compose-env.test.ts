import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { writeComposeEnv } from './compose-env.ts';

it('writes a .env only once, and reports why it cannot write another one', () => {
  const folder = mkdtempSync(join(tmpdir(), 'writ-compose-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, '.env');
  expect(writeComposeEnv(file)).toBeUndefined();
  const written = readFileSync(file, 'utf8');
  expect(writeComposeEnv(file)).toContain('already exists');
  expect(readFileSync(file, 'utf8')).toBe(written);
  expect(writeComposeEnv(join(folder, 'none/.env'))).toMatch(/cannot be written \(ENOENT\)/);
});
