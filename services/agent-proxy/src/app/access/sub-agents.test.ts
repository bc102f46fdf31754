import { UnavailableError } from '@writ/kernel';
import { createTelemetry } from '@writ/telemetry';
import { testStore } from '@writ/testing/postgres';
import { expect, it, onTestFinished } from 'vitest';
import { agentRow } from '../../../test/agent-row.ts';
import { openProxyStore } from '../../store/proxy-store.ts';
import type { AgentTokens } from '../agent/agent-tokens.ts';
import { RequestsInProgress } from '../agent/requests-in-progress.ts';
import { Slots } from '../agent/slots.ts';
import { SubAgents } from './sub-agents.ts';

it('reports the slot of the parent as suspended even after a failed spawn (SB-4, EM-1, AP-6)', async () => {
  const store = await openProxyStore(testStore({ dialect: 'sqlite', file: ':memory:' }));
  onTestFinished(() => store.close());
  const { log } = createTelemetry({ service: 'test', logLevel: 'silent' });
  const intents: string[] = [];
  const peers = {
    renew: async (_token: string, intent: string) => {
      intents.push(intent);
      return { grant: 'grant' };
    },
    spawnChild: () => Promise.reject(new UnavailableError('UNAVAILABLE', 'Not reachable.')),
  };
  const tokens = { of: async () => ({ supervisor: '', spawnBudget: '' }) };
  const agentTokens = tokens as unknown as AgentTokens;
  const open = new RequestsInProgress(1);
  const times = { grantMs: 60_000, suspendMs: 10 };
  const slots = new Slots({ peers, tokens: agentTokens, open, log, ...times });
  onTestFinished(() => slots.stop());
  const agents = new SubAgents({ store, peers, tokens: agentTokens, slots });
  const parent = { ...agentRow('root', new Date(0)), child_name: 'helper' };
  const named = { id: 'a', parent: '' };
  await expect(agents.of(parent, named, async () => 'Read it.')).rejects.toMatchObject({
    reason: 'UNAVAILABLE',
  });
  await expect.poll(() => intents).toEqual(['run', 'suspend']);
});
