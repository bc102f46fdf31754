import { setTimeout as sleep } from 'node:timers/promises';
import type { Replicas } from '@writ/store';
import { findCall, type StoredCall } from '../../store/calls.ts';
import type { MeterStore } from '../../store/meter-store.ts';
import type { CallRequest } from './call-request.ts';

/** Interval at which the store is polled for the end of a call of another replica, in milliseconds. */
const POLL_MS = 50;

/** Whether another replica that is not in `dead` owns a call (EM-7). */
export function isOwnedByPeer(
  call: StoredCall | undefined,
  replicas: Replicas,
  dead: ReadonlySet<string>,
): boolean {
  if (!replicas.shared || call?.state !== 'running') return false;
  const { owner } = call;
  return owner !== '' && owner !== replicas.id && !dead.has(owner);
}

/**
 * Waits until no other live replica owns a call. Resolves to the record of the call, if it exists, and to the dead
 * replicas among its owners.
 * @throws the reason of `signal` when the signal aborts
 */
export async function waitForPeer(
  { db, replicas }: MeterStore,
  request: CallRequest,
  signal: AbortSignal,
): Promise<{ readonly known: StoredCall | undefined; readonly dead: ReadonlySet<string> }> {
  let dead: ReadonlySet<string> = new Set();
  for (;;) {
    const known = await findCall(db, request, request.callId);
    if (known === undefined || !isOwnedByPeer(known, replicas, dead)) return { known, dead };
    dead = await replicas.findDead([known.owner]);
    await sleep(POLL_MS, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
}
