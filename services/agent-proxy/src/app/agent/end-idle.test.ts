import { ManualClock, PreconditionError, UnavailableError } from '@writ/kernel';
import { createTelemetry } from '@writ/telemetry';
import { testStore } from '@writ/testing/postgres';
import { expect, it, onTestFinished } from 'vitest';
import { agentRow } from '../../../test/agent-row.ts';
import type { ProxyContext } from '../../context.ts';
import type { ProxyPeers } from '../../peers/peers.ts';
import { insertAgent, saveAgent } from '../../store/agents.ts';
import { openProxyStore } from '../../store/proxy-store.ts';
import { AgentTokens } from './agent-tokens.ts';
import { IdleAgents } from './end-idle.ts';
import { RequestsInProgress } from './requests-in-progress.ts';

const NOW = new Date('2026-11-01T12:00:00Z');
const TOKEN_MS = 60_000;

type ReportedPeers = Pick<ProxyPeers, 'reportOutcome' | 'endChild' | 'refreshTokens'>;

/** Opens a store; returns it with the clock and a function that creates the context of agents with these peers. */
async function openTest() {
  const store = await openProxyStore(testStore({ dialect: 'sqlite', file: ':memory:' }));
  onTestFinished(() => store.close());
  const clock = new ManualClock(NOW);
  const contextOf = (peers: ReportedPeers) =>
    ({
      store,
      clock,
      peers,
      tokens: new AgentTokens(store, peers, clock),
      open: new RequestsInProgress(1),
      telemetry: createTelemetry({ service: 'test', logLevel: 'silent' }),
    }) as unknown as ProxyContext;
  const credentialsOf = (supervisor: string) => ({
    supervisor,
    spawnBudget: '',
    executionMeter: '',
    toolGateway: '',
    expiresAt: clock.now().getTime() + TOKEN_MS,
  });
  return { store, clock, contextOf, credentialsOf };
}

it('retries EndChild of an idle sub-agent whose end is recorded and whose token has expired (AP-1, AP-6)', async () => {
  const { store, clock, contextOf, credentialsOf } = await openTest();
  const calls: string[] = [];
  const peers: ReportedPeers = {
    async reportOutcome(_, stopReason, token) {
      calls.push(`report ${token} ${stopReason}`);
    },
    async endChild(_, instance, { agentToken }) {
      calls.push(`end ${instance} by ${agentToken}`);
      if (calls.length < 3) throw new UnavailableError('END_PENDING', 'Still being ended.');
    },
    // The supervisor renews the tokens of an agent until its end is recorded.
    async refreshTokens(token) {
      const isEnded = calls.includes(`report ${token} idle`);
      if (isEnded) throw new PreconditionError('RUN_ENDED', 'The agent has ended.');
      return credentialsOf(token);
    },
  };
  await store.transaction(async (trx) => {
    const credentials = (instance: string) => JSON.stringify(credentialsOf(instance));
    const root = { ...agentRow('root', NOW), idle_ms: 3_600_000, credentials: credentials('root') };
    const child = { parent_instance: 'root', credentials: credentials('child') };
    await insertAgent(trx, root);
    await insertAgent(trx, { ...agentRow('child', NOW), ...child });
  });
  const idle = new IdleAgents(contextOf(peers));
  clock.advance(2_000);
  await idle.end();
  const failed = ['report child idle', 'end child by root'];
  expect(calls).toEqual(failed);
  clock.advance(TOKEN_MS);
  await idle.end();
  expect(calls).toEqual([...failed, 'end child by root']);
});

it('does not end an agent that another replica used while earlier agents of the page ended (AP-1)', async () => {
  const { store, clock, contextOf, credentialsOf } = await openTest();
  const runs = ['run-1', 'run-2'];
  const reported: string[] = [];
  const peers: ReportedPeers = {
    async reportOutcome(_, _stopReason, token) {
      reported.push(token);
      await store.transaction(async (trx) => {
        for (const runId of runs) {
          const key = { tenant: 'acme', runId, instance: 'root' };
          if (runId !== token) await saveAgent(trx, key, { used_at: clock.now() });
        }
      });
    },
    endChild: () => Promise.reject(new Error('The agents have no sub-agents.')),
    async refreshTokens(token) {
      return credentialsOf(token);
    },
  };
  await store.transaction(async (trx) => {
    for (const run_id of runs) {
      const credentials = JSON.stringify(credentialsOf(run_id));
      await insertAgent(trx, { ...agentRow('root', NOW), run_id, credentials });
    }
  });
  clock.advance(2_000);
  await new IdleAgents(contextOf(peers)).end();
  expect(reported).toHaveLength(1);
});
