import { ManualClock } from '@writ/kernel';
import { createTelemetry } from '@writ/telemetry';
import { testStore } from '@writ/testing/postgres';
import { expect, it, onTestFinished } from 'vitest';
import { agentRow } from '../../../test/agent-row.ts';
import type { ProxyContext } from '../../context.ts';
import { findAgent, insertAgent, keyOf } from '../../store/agents.ts';
import { openProxyStore } from '../../store/proxy-store.ts';
import { keepActive } from './keep-active.ts';
import { RequestsInProgress } from './requests-in-progress.ts';

const NOW = new Date('2026-11-01T12:00:00Z');

it('records that an agent with a request in progress is in use, so that no other replica ends it as idle (AP-1)', async () => {
  const store = await openProxyStore(testStore({ dialect: 'sqlite', file: ':memory:' }));
  onTestFinished(() => store.close());
  const clock = new ManualClock(NOW);
  const open = new RequestsInProgress(1);
  const telemetry = createTelemetry({ service: 'test', logLevel: 'silent' });
  const kept: string[] = [];
  const slots = { keep: async ({ instance }: { instance: string }) => void kept.push(instance) };
  const context = { store, clock, open, telemetry, slots } as unknown as ProxyContext;
  const [busy, idle] = [agentRow('busy', NOW), agentRow('idle', NOW)];
  await store.transaction(async (trx) => {
    for (const agent of [busy, idle]) await insertAgent(trx, agent);
  });
  const request = open.begin(busy);
  const usedAt = async (agent: typeof busy) => (await findAgent(store.db, keyOf(agent)))?.used_at;
  for (let minute = 1; minute <= 2; minute += 1) {
    clock.advance(60_000);
    await keepActive(context);
    expect(await usedAt(busy)).toEqual(clock.now());
    expect(await usedAt(idle)).toEqual(NOW);
  }
  expect(kept).toEqual(['busy', 'busy']);
  request.end();
  clock.advance(60_000);
  await keepActive(context);
  expect(kept).toHaveLength(2);
});
