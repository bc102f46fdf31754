import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished, vi } from 'vitest';
import { PROXIED_MODEL, startProxiedModel } from '../bench/proxied-model.ts';
import { startProgram } from './program.ts';

const WARM_UP = 20;
const CALLS = 40;
/**
 * Statements on the `calls` tables for one model call. In agent-proxy, they look for an equal call, insert the call and
 * mark it as delivered; the other statements are those of the meter.
 */
const BUDGET = { 'select calls': 2, 'insert calls': 3, 'update calls': 1 };
/** Matches the queries that agent-proxy makes for every call, if they are built instead of prepared. */
const OF_EACH_CALL = /^built: .*"(calls|agents)"( where | \().*"instance"/;

it('makes a model call through agent-proxy with few statements, all of them prepared (AP-2, CO-1)', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'writ-call-cost-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true, maxRetries: 10 }));
  const file = fileURLToPath(new URL('../bench/peers/model-program.ts', import.meta.url));
  const model = await startProgram(file, {});
  onTestFinished(() => model.stop());
  const modelUrl = `http://${model.address}/agent-proxy/v1`;
  const proxied = await startProxiedModel(folder, modelUrl, { countsWork: true });
  onTestFinished(() => proxied.close());
  let asked = 0;
  const call = async () => {
    asked += 1;
    const messages = [{ role: 'user', content: `Question ${asked}.` }];
    const response = await fetch(`${proxied.baseUrl}/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${proxied.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: PROXIED_MODEL, messages, stream: true }),
    });
    expect(await response.text()).toContain('[DONE]');
  };
  /** Returns the work after the delivery of every call has been stored, which is the last statement of a call. */
  const workOfCalls = async () => {
    let work = await proxied.work();
    await vi.waitFor(async () => {
      work = await proxied.work();
      expect(work.byTable['update calls']).toBeGreaterThanOrEqual(asked);
    });
    return work;
  };
  for (let n = 0; n < WARM_UP; n += 1) await call();
  const before = await workOfCalls();
  for (let n = 0; n < CALLS; n += 1) await call();
  const after = await workOfCalls();
  const taken = (name: string) => (after.byTable[name] ?? 0) - (before.byTable[name] ?? 0);
  const perCall = Object.entries(BUDGET).map(([name]) => [name, taken(name) / CALLS]);
  expect(Object.fromEntries(perCall)).toEqual(BUDGET);
  const names = Object.keys(after.byTable).filter((name) => taken(name) > 0);
  expect(names.filter((name) => OF_EACH_CALL.test(name))).toEqual([]);
});
