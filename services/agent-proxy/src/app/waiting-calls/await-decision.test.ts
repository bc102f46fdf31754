import { systemClock } from '@writ/kernel';
import { testStore } from '@writ/testing/postgres';
import { expect, it, onTestFinished } from 'vitest';
import { agentRow } from '../../../test/agent-row.ts';
import type { ProxyContext } from '../../context.ts';
import { insertAgent, keyOf } from '../../store/agents.ts';
import { openProxyStore } from '../../store/proxy-store.ts';
import { insertToolCall } from '../../store/tool-calls.ts';
import { cancelAgents } from '../agent/cancel-agents.ts';
import { RequestsInProgress } from '../agent/requests-in-progress.ts';
import { ToolLists } from '../tools/list-tools.ts';
import { PendingReceipts } from '../tools/pending-receipts.ts';
import { awaitDecision } from './await-decision.ts';
import { DisconnectTimes } from './disconnect-times.ts';
import { WaitingRequests } from './waiting-requests.ts';

it.each([
  ['its run', ''],
  ['its agent', 'busy'],
])(
  'a request stops waiting when another replica has ended %s (AP-1, AP-4, SUP-8)',
  async (_, instance) => {
    const store = await openProxyStore(testStore({ dialect: 'sqlite', file: ':memory:' }));
    onTestFinished(() => store.close());
    const clock = systemClock;
    const replica = () => ({
      store,
      clock,
      open: new RequestsInProgress(1),
      slots: { released: () => undefined, forget: () => undefined },
      receipts: new PendingReceipts(),
      disconnectTimes: new DisconnectTimes(),
      toolLists: new ToolLists(clock),
      waitingRequests: new WaitingRequests(clock),
    });
    const agent = agentRow('busy', clock.now());
    const call = { ...keyOf(agent), callId: 'call-1' };
    await store.transaction(async (trx) => {
      await insertAgent(trx, agent);
      const row = { tool: 'pay', digest: 'd', number: 1, created_at: clock.now() };
      await insertToolCall(trx, call, row);
    });
    const begun = Promise.withResolvers<void>();
    const terms = {
      holdMs: 15_000,
      signal: new AbortController().signal,
      onProgress: () => begun.resolve(),
    };
    const own = replica() as unknown as ProxyContext;
    const ended = expect(awaitDecision(own, call, 'approval-1', terms)).rejects.toMatchObject({
      reason: 'RUN_ENDED',
      metadata: { run_id: 'run-1', agent: 'busy', stop_reason: 'cancelled' },
    });
    await begun.promise;
    const other = replica() as unknown as ProxyContext;
    const { tenant, runId } = call;
    const order = { tenant, runId, instance, requestId: 'req-9', stopReason: 'cancelled' };
    expect(await cancelAgents(other, order)).toBe(1);
    await ended;
  },
);
