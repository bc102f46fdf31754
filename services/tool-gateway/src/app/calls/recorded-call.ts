import { admitEpoch } from '@writ/identity';
import { PermissionDeniedError } from '@writ/kernel';
import type { GatewayContext } from '../../context.ts';
import type { CallRow } from '../../store/calls.ts';
import { seenEpoch, storeEpoch } from '../../store/epochs.ts';
import type { GatewayTransaction } from '../../store/gateway-store.ts';
import type { PresentedCall } from './presented-call.ts';

/**
 * Returns the recorded outcome of a call, so that a repeated call is not executed again; undefined while only the
 * intent is recorded (TG-1).
 * @throws PermissionDeniedError WRIT_MISMATCH
 */
export function recordedOutcome(known: CallRow, presented: PresentedCall): CallRow | undefined {
  rejectOtherCall(known, presented);
  return known.state === 'intent' ? undefined : known;
}

/**
 * Rejects the use of a call id for another tool or other arguments (TG-1). Accepts every burnt call, because its record
 * contains no tool and no arguments.
 * @throws PermissionDeniedError WRIT_MISMATCH
 */
export function rejectOtherCall(known: CallRow, { writ }: PresentedCall): void {
  if (known.state === 'burnt') return;
  const isOtherTool = known.tool !== writ.tool;
  if (!isOtherTool && known.args_sha256 === writ.argsSha256) return;
  const field = isOtherTool ? 'tool' : 'arguments_json';
  throw new PermissionDeniedError(
    'WRIT_MISMATCH',
    `The call id was used before with another ${field}. Use a new call id.`,
    { field, writ_id: writ.id },
  );
}

/**
 * Rejects a worker that lost its lease; stores a higher epoch, so that a repeat of a recorded call also fences the
 * previous worker (RT-2).
 * @throws PreconditionError STALE_EPOCH
 */
export async function admitRepeat(
  { store }: GatewayContext,
  { writ, epoch }: PresentedCall,
): Promise<void> {
  const seen = await seenEpoch(store.db, writ);
  admitEpoch(seen, epoch);
  if (seen === undefined || seen === epoch) return;
  const work = async (trx: GatewayTransaction): Promise<void> => {
    const highest = admitEpoch(await seenEpoch(trx, writ), epoch);
    await storeEpoch(trx, writ, highest);
  };
  await store.transaction(work, { run: writ });
}
