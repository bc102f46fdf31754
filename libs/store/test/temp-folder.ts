import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';

/** A directory that is deleted after the test; `file` returns a path in it. */
export function tempFolder(): { file(name: string): string } {
  const path = mkdtempSync(join(tmpdir(), 'writ-store-'));
  onTestFinished(() => rmSync(path, { recursive: true, force: true }));
  return { file: (name) => join(path, name) };
}
