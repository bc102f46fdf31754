import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, it, onTestFinished } from 'vitest';
import { PROXIED_MODEL, startProxiedModel } from '../bench/proxied-model.ts';
import { startProgram } from './program.ts';
import type { Work } from './steps/count-work.ts';

const WARM_UP = 20;
const CALLS = 40;
/** Longer than the interval at which background work is written. */
const SETTLE_MS = 3_500;
/** Longer than the interval of the slowest background poll. */
const IDLE_MS = 6_000;
/** What one call may take: of agent-proxy, the agent, its request and the delivery; the other statements are the meter's. */
const BUDGET = { 'select agents': 1, 'select calls': 2, 'insert calls': 3, 'update calls': 1 };

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
  for (let n = 0; n < WARM_UP; n += 1) await call();
  await sleep(SETTLE_MS);
  await proxied.work('idle');
  await sleep(IDLE_MS);
  const before = await proxied.work('busy');
  for (let n = 0; n < CALLS; n += 1) await call();
  await sleep(SETTLE_MS);
  const after = await proxied.work();
  const taken = (name: string, of = (work: Work) => work.byTable[name] ?? 0) =>
    (of(after) - of(before)) / CALLS;
  const perCall = Object.fromEntries(Object.keys(BUDGET).map((name) => [name, taken(name)]));
  expect(perCall).toEqual(BUDGET);
  const built = Object.keys(after.byTable).filter(
    (name) => name.startsWith('built: ') && taken(name) >= 1,
  );
  expect(built).toEqual([]);
});
