import { describe, expect, it, vi } from 'vitest';
import { openLoneReplica, presentedCall } from '../../../test/call-replica.ts';
import type { GatewayContext } from '../../context.ts';
import { findCall } from '../../store/calls.ts';
import type { GatewayStore } from '../../store/gateway-store.ts';
import { beginCall } from './begin-call.ts';
import { endCall } from './end-call.ts';
import { recoverCalls } from './recover-calls.ts';

const RUN = { tenant: 'acme', runId: 'run_1' };

/** A replica with a call of `tool` that has an intent, but is not in flight. */
async function openWithCall(tool: 'pay' | 'charge') {
  const replica = await openLoneReplica();
  const { context, store } = replica;
  // With PostgreSQL, the sweeper of the replica would also recover the call.
  await replica.stop();
  const presented = presentedCall(RUN, 'op-1', { tool, maxToolCalls: 10 });
  const begin = async () => {
    const { registry } = context.tools.now;
    const begun = await beginCall({ ...context, registry, deadReplicas: new Set() }, presented);
    if (begun.kind !== 'run') throw new Error(`The call was not begun: ${begun.kind}.`);
    return begun;
  };
  const begun = await begin();
  const warn = vi.spyOn(context.telemetry.log, 'warn');
  return { context, store, begin, begun, warn, row: () => findCall(store.db, presented.writ) };
}

/** The context with a store whose transactions begin after `earlier` has ended. */
function withEarlier(context: GatewayContext, earlier: () => Promise<unknown>): GatewayContext {
  const { db, replicas } = context.store;
  const store: Pick<GatewayStore, 'db' | 'replicas' | 'transaction'> = {
    db,
    replicas,
    transaction: async (work, options) => {
      await earlier();
      return await context.store.transaction(work, options);
    },
  };
  return { ...context, store: store as GatewayStore };
}

describe('recovery of interrupted calls (TG-5)', () => {
  it('keeps the owner of a call that is repeated before the call is released', async () => {
    const { context, store, begin, row } = await openWithCall('charge');
    await recoverCalls(withEarlier(context, begin));
    expect(await row()).toMatchObject({ state: 'intent', owner: store.replicas.id, attempts: 2 });
  });

  it.each([
    ['pay', 'unknown', 'unknown'],
    ['charge', 'interrupted', 'intent'],
  ] as const)('logs that a call of %s is %s', async (tool, state, recorded) => {
    const { context, warn, row } = await openWithCall(tool);
    await recoverCalls(context);
    expect(await row()).toMatchObject({ state: recorded });
    expect(warn).toHaveBeenCalledExactlyOnceWith(
      expect.objectContaining({ call_id: 'op-1', tool, state }),
      'interrupted call recovered',
    );
  });

  it.each(['pay', 'charge'] as const)(
    'logs no call of %s that ended before the call is recovered',
    async (tool) => {
      const { context, begun, warn, row } = await openWithCall(tool);
      const { signal } = new AbortController();
      const output = { kind: 'text', content: 'done' } as const;
      const run = { ending: 'ok', output, message: '', durationMs: 1 } as const;
      await recoverCalls(withEarlier(context, () => endCall(context, begun, run, signal)));
      expect(await row()).toMatchObject({ state: 'ok', result_content: 'done' });
      expect(warn).not.toHaveBeenCalled();
    },
  );
});
