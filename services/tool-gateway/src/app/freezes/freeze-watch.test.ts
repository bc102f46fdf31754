import { insertFreeze, watchFreezes } from '@writ/freeze';
import { type CallKey, ManualClock } from '@writ/kernel';
import type { Replicas } from '@writ/store';
import { createTelemetry } from '@writ/telemetry';
import { expect, it, onTestFinished } from 'vitest';
import type { CallRow } from '../../store/calls.ts';
import { openGatewayStore } from '../../store/gateway-store.ts';
import { InFlightCalls } from '../calls/in-flight-calls.ts';

const MINUTE_MS = 60_000;
const CALL: CallKey = { tenant: 'acme', runId: 'run_1', instance: 'payer-1', callId: 'op-1' };
const { log } = createTelemetry({ service: 'tool-gateway', logLevel: 'silent' });

it('cancels calls frozen while this process was paused or its clock jumped (SV-9)', async () => {
  const store = await openGatewayStore({ dialect: 'sqlite', file: ':memory:' });
  onTestFinished(() => store.close());
  let hint = (): void => undefined;
  const replicas: Replicas = {
    ...store.replicas,
    onHint: (_, listener) => {
      hint = listener;
      return () => undefined;
    },
  };
  const clock = new ManualClock();
  const inFlightCalls = new InFlightCalls();
  const running = inFlightCalls.join(CALL, 'pay', new AbortController().signal, async (call) => {
    call.startedAt = clock.now();
    call.outlivesCallers = true;
    const { cancelSignal } = call;
    return await new Promise<CallRow>((_, reject) => {
      cancelSignal.addEventListener('abort', () => reject(cancelSignal.reason));
    });
  });
  clock.advance(MINUTE_MS);
  await store.transaction((trx) =>
    insertFreeze(
      trx,
      {
        orderId: 'halt_1',
        scope: { tenant: 'acme', runId: 'run_1' },
        cause: 'halt',
        reason: 'It pays too much.',
        orderedBy: 'olga',
        orderedAt: clock.now(),
        retention: null,
      },
      clock.now(),
    ),
  );
  clock.advance(10 * MINUTE_MS);
  const watch = watchFreezes({ store: { ...store, replicas }, calls: inFlightCalls, log });
  onTestFinished(() => watch.stop());
  hint();
  await expect(running).rejects.toMatchObject({ reason: 'HALTED' });
});
