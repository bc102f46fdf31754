import type { Clock } from '@writ/kernel';
import { sendSignal } from '../app/agents/send-signal.ts';
import { deleteTimer, dueTimers } from '../store/timers.ts';
import type { WorkerStore } from '../store/worker-store.ts';
import { claimBatch } from './leases/claim-batch.ts';

/** Maximum number of timers per transaction. */
const MAX_BATCH = 256;

/**
 * Turns due timers into signals, in one transaction; each timer fires once, even with several workers (RT-3). One call
 * may fire only some of the due timers.
 */
export async function fireTimers(
  store: WorkerStore,
  clock: Clock,
  tenants: readonly string[],
): Promise<void> {
  const at = clock.now();
  const found = await dueTimers(store.db, at, MAX_BATCH, tenants);
  const due = claimBatch(found, MAX_BATCH, {
    dialect: store.dialect,
    runOf: ({ run_id: runId }) => runId,
  });
  if (due.length === 0) return;
  await store.transaction(
    async (trx) => {
      for (const timer of due) {
        const key = { tenant: timer.tenant, runId: timer.run_id, instance: timer.instance };
        if (!(await deleteTimer(trx, key, timer.timer_id))) continue;
        const { timer_id: id, name, payload } = timer;
        await sendSignal(trx, key, { id: `timer-${id}`, name, payload }, at);
      }
    },
    {
      runs: due.map(({ tenant, run_id: runId }) => ({ tenant, runId })),
      background: true,
    },
  );
}
