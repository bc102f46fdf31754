import { testStore } from '@writ/testing/postgres';
import { expect, it, onTestFinished } from 'vitest';
import { agentRow } from '../../test/agent-row.ts';
import { FIRST_UNUSED, insertAgent, UNUSED_PAGE, unusedAgents } from './agents.ts';
import { openProxyStore } from './proxy-store.ts';

it('reads every unused agent once, page by page, even if all agents have the same time (AP-1)', async () => {
  const store = await openProxyStore(testStore({ dialect: 'sqlite', file: ':memory:' }));
  onTestFinished(() => store.close());
  const used = new Date('2026-11-01T12:00:00Z');
  const names = Array.from({ length: UNUSED_PAGE + 50 }, (_, index) => `root-${index}`);
  await store.transaction(async (trx) => {
    for (const instance of names) await insertAgent(trx, agentRow(instance, used));
  });
  const later = new Date(used.getTime() + 1);
  const first = await unusedAgents(store.db, later, FIRST_UNUSED);
  expect(first).toHaveLength(UNUSED_PAGE);
  const rest = await unusedAgents(store.db, later, first.at(-1) ?? FIRST_UNUSED);
  expect([...first, ...rest].map(({ instance }) => instance).toSorted()).toEqual(names.toSorted());
});
