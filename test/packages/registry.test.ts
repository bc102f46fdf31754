import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished, vi } from 'vitest';
import { startRegistry } from './registry.ts';

it('returns 502 with the error when the body of an upstream response ends early (PE-3)', async () => {
  const { fetch } = globalThis;
  const interrupted = new ReadableStream({
    start: (controller) => controller.error(new Error('The connection was reset.')),
  });
  vi.stubGlobal('fetch', () => Promise.resolve(new Response(interrupted)));
  const folder = mkdtempSync(join(tmpdir(), 'writ-registry-'));
  const registry = await startRegistry(folder);
  onTestFinished(async () => {
    await registry.close();
    rmSync(folder, { recursive: true });
  });
  const response = await fetch(`${registry.url}/left-pad`, { signal: AbortSignal.timeout(10_000) });
  expect(response.status).toBe(502);
  expect(await response.text()).toContain('The connection was reset.');
});
