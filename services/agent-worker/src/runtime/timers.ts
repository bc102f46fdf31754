import type { Clock } from '@writ/kernel';
import { sendSignal } from '../app/agents/send-signal.ts';
import { deleteTimer, dueTimers, nextDue } from '../store/timers.ts';
import type { WorkerStore } from '../store/worker-store.ts';

/** Timers that go off in one look. */
const MAX_BATCH = 256;

/**
 * Turns the timers whose time has come into signals, in one transaction for all of them; each goes
 * off once, whoever looks (RT-3).
 */
export async function fireTimers(
  store: WorkerStore,
  clock: Clock,
  tenants: readonly string[],
): Promise<void> {
  const at = clock.now();
  const due = await dueTimers(store.db, at, MAX_BATCH, tenants);
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
    { background: true },
  );
}

/** Shortest wait for a timer, in milliseconds, so that one that cannot be fired keeps nobody busy. */
const MIN_WAIT_MS = 5;

/** How long nothing is due, in milliseconds, at most `most`. */
export async function untilNextTimer(
  store: WorkerStore,
  clock: Clock,
  tenants: readonly string[],
  most: number,
): Promise<number> {
  const next = await nextDue(store.db, tenants);
  if (next === undefined) return most;
  return Math.max(MIN_WAIT_MS, Math.min(most, next.getTime() - clock.now().getTime()));
}
