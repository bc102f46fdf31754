import { describe, expect, it } from 'vitest';
import { openLoneReplica, presentedCall } from '../../../test/call-replica.ts';
import type { GatewayContext } from '../../context.ts';
import type { ToolInvocation } from '../../sources/source.ts';
import { findCall } from '../../store/calls.ts';
import { beginCall } from './begin-call.ts';
import { executeCall } from './execute-call.ts';

const RUN = { tenant: 'acme', runId: 'run_1' };

describe('a call that is recorded while a request for it waits for a slot', () => {
  it('is not executed with the arguments of another writ (TG-1)', async () => {
    const executed: ToolInvocation[] = [];
    const { context, store } = await openLoneReplica((each) => void executed.push(each));
    const charge = { tool: 'charge', maxToolCalls: 10 };
    const recorded = presentedCall(RUN, 'op-1', { ...charge, to: 'anna' });
    const other = presentedCall(RUN, 'op-1', { ...charge, to: 'eve' });
    const { registry, find } = context.tools.now;
    const acquire = async () => {
      await beginCall({ ...context, registry, deadReplicas: new Set() }, recorded);
      return () => undefined;
    };
    const source = { ...find('world'), slots: { acquire } };
    const tools = { now: { registry, find: () => source } } as unknown as GatewayContext['tools'];
    await expect(
      executeCall({ ...context, tools }, other, new AbortController().signal),
    ).rejects.toMatchObject({ reason: 'WRIT_MISMATCH', metadata: { field: 'arguments_json' } });
    expect(executed).toEqual([]);
    const { argsSha256: args_sha256 } = recorded.writ;
    const row = await findCall(store.db, recorded.writ);
    expect(row).toMatchObject({ state: 'intent', attempts: 1, args_sha256 });
  });
});
