import type { CallContext } from '@writ/rpc';
import type { SupervisorContext } from '../../context.ts';
import { awaitChange } from '../../store/change/change-alarm.ts';
import { type HaltRow, loadHalt } from '../../store/halt/halts.ts';

/**
 * The wait ends at least this time before the caller's deadline (half of the remaining time if that is shorter), so
 * that the response can name the services that have not answered; ms.
 */
const BEFORE_DEADLINE_MS = 1_000;

/**
 * Waits until a halt satisfies `isEnough`, for at most `haltWaitMs`; the wait ends before the caller's deadline.
 * Returns the last state of the halt, also when the caller disconnects.
 */
export async function awaitHalt(
  { store, config }: Pick<SupervisorContext, 'store' | 'config'>,
  haltId: string,
  { signal, remainingMs: left }: Pick<CallContext, 'signal' | 'remainingMs'>,
  isEnough: (halt: HaltRow) => boolean,
): Promise<HaltRow> {
  const sooner = Math.min(left / 2, BEFORE_DEADLINE_MS);
  const waitMs = Math.max(1, Math.floor(Math.min(config.haltWaitMs, left - sooner)));
  return await awaitChange({
    changes: store.changes,
    topic: 'halts',
    pollMs: config.watchPollMs,
    signal: AbortSignal.any([signal, AbortSignal.timeout(waitMs)]),
    read: () => loadHalt(store.urgentDb, haltId),
    isEnough,
  });
}
