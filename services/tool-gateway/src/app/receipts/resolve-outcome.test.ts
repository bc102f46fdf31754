import { expect, it, vi } from 'vitest';
import { openLoneReplica, presentedCall } from '../../../test/call-replica.ts';
import type { GatewayStore } from '../../store/gateway-store.ts';
import { beginCall } from '../calls/begin-call.ts';
import { recoverCalls } from '../calls/recover-calls.ts';
import { resolveOutcome } from './resolve-outcome.ts';

it('logs the resolution of an unknown outcome only after its commit (TG-5)', async () => {
  const { context, store } = await openLoneReplica();
  const { registry } = context.tools.now;
  const call = presentedCall({ tenant: 'acme', runId: 'run_1' }, 'op-1', {
    tool: 'pay',
    maxToolCalls: 10,
  });
  await beginCall({ ...context, registry, deadReplicas: new Set() }, call);
  // No request of this process executes the call, so recoverCalls records that its outcome is unknown.
  await recoverCalls(context);
  const rolledBack: Pick<GatewayStore, 'transaction'> = {
    transaction: (work, options) =>
      store.transaction(async (trx) => {
        await work(trx);
        throw new Error('rolled back');
      }, options),
  };
  const info = vi.spyOn(context.telemetry.log, 'info');
  const resolution = { requestId: 'resolve_1', digest: 'digest', resolvedBy: 'olga', done: true };
  const failing = { ...context, store: rolledBack as GatewayStore };
  await expect(resolveOutcome(failing, call.writ, resolution)).rejects.toThrow('rolled back');
  expect(info).not.toHaveBeenCalled();
  await resolveOutcome(context, call.writ, resolution);
  expect(info).toHaveBeenCalledExactlyOnceWith(
    { tenant: 'acme', run_id: 'run_1', call_id: 'op-1', state: 'ok' },
    'unknown outcome resolved',
  );
});
