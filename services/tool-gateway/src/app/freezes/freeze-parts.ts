import { type FreezeOrder, type FreezeParts, purges } from '@writ/freeze';
import type { GatewayContext } from '../../context.ts';
import { inFlightCallRows, keyOf, purgeResults } from '../../store/calls.ts';
import type { GatewayTransaction } from '../../store/gateway-store.ts';
import type { GatewayDatabase } from '../../store/schema.ts';

/** Returns what the freeze handlers need to freeze the calls of the gateway (SV-9, SUP-8). */
export function freezeParts({
  store,
  clock,
  inFlightCalls,
  telemetry,
  flushSoon,
}: Pick<
  GatewayContext,
  'store' | 'clock' | 'inFlightCalls' | 'telemetry' | 'flushSoon'
>): FreezeParts<GatewayDatabase> {
  return {
    store,
    clock,
    log: telemetry.log,
    calls: inFlightCalls,
    callsInStore: async (db, scope) => {
      const rows = await inFlightCallRows(db, scope);
      return rows.map((call) => ({
        ...keyOf(call),
        target: call.tool,
        startedAt: call.started_at,
        owner: call.owner,
      }));
    },
    onRecord: async (trx, order, inForce) => {
      if (inForce && purges(order)) await purge(trx, order);
    },
    onCommit: flushSoon,
  };
}

async function purge(trx: GatewayTransaction, { scope }: FreezeOrder): Promise<void> {
  const { tenant, runId, instance } = scope;
  if (tenant === undefined || runId === undefined) return;
  await purgeResults(trx, { tenant, runId, ...(instance && { instance }) });
}
