import { type FreezeParts, purges } from '@writ/freeze';
import type { MeterContext } from '../../context.ts';
import { purgeAnswers, runningCalls } from '../../store/calls.ts';
import type { MeterDatabase } from '../../store/schema.ts';
import type { ModelCalls } from '../calls/model-calls.ts';

/** Returns the dependencies of the freeze handlers, which freeze the calls of the meter (SUP-8, SV-9). */
export function freezeParts(
  { store, clock, telemetry }: MeterContext,
  calls: ModelCalls,
): FreezeParts<MeterDatabase> {
  return {
    store,
    clock,
    log: telemetry.log,
    calls,
    callsInStore: async (db, scope) =>
      (await runningCalls(db, scope)).map(({ model, attempt: _, ...call }) => ({
        ...call,
        target: model,
      })),
    onRecord: async (trx, order) => {
      const { tenant, runId, instance } = order.scope;
      const endsRun = order.cause === 'end' && instance === undefined;
      if (endsRun && tenant !== undefined && runId !== undefined) {
        await purgeAnswers(trx, { tenant, runId }, purges(order));
      }
    },
  };
}
