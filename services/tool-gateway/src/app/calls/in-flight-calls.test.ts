import type { CallKey } from '@writ/kernel';
import { describe, expect, it } from 'vitest';
import type { CallRow } from '../../store/calls.ts';
import { InFlightCalls } from './in-flight-calls.ts';

const KEY: CallKey = { tenant: 'acme', runId: 'run-1', instance: 'root', callId: 'op-1' };
const DONE = { call_id: 'op-1', state: 'ok' } as CallRow;

describe('a call in flight', () => {
  it('is not joined after all its callers disconnected, but begun again after its cancellation (TG-1)', async () => {
    const calls = new InFlightCalls();
    const stopped = Promise.withResolvers<void>();
    const caller = new AbortController();
    const first = calls.join(KEY, 'look', caller.signal, async ({ cancelSignal }) => {
      await stopped.promise;
      throw cancelSignal.reason;
    });
    caller.abort(new Error('The caller left.'));
    await expect(first).rejects.toThrow('The caller left.');
    const begun: string[] = [];
    const again = calls.join(KEY, 'look', new AbortController().signal, async () => {
      begun.push('again');
      return DONE;
    });
    // Two concurrent attempts could execute the tool twice.
    await Promise.resolve();
    expect(begun).toEqual([]);
    stopped.resolve();
    expect(await again).toEqual({ call: DONE, joined: false });
  });

  it('rejects a caller that disconnects while it waits for the end of a cancelled call', async () => {
    const calls = new InFlightCalls();
    const stopped = Promise.withResolvers<CallRow>();
    const caller = new AbortController();
    const first = calls.join(KEY, 'look', caller.signal, () => stopped.promise);
    caller.abort(new Error('The caller left.'));
    await expect(first).rejects.toThrow('The caller left.');
    const next = new AbortController();
    const waiting = calls.join(KEY, 'look', next.signal, async () => DONE);
    next.abort(new Error('This one left, too.'));
    await expect(waiting).rejects.toThrow('This one left, too.');
    stopped.resolve(DONE);
  });
});
