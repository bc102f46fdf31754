import { setTimeout as sleep } from 'node:timers/promises';
import type { Replicas } from '@writ/store';
import { findCall, type StoredCall } from '../../store/calls.ts';
import type { MeterStore } from '../../store/meter-store.ts';
import type { CallAsk } from './call-ask.ts';

/** Between two looks whether another replica has come to an end with a call. */
const LOOK_MS = 50;

/** Whether another replica, which is not among the `gone`, is making a call (EM-7). */
export function isElsewhere(
  call: StoredCall | undefined,
  replicas: Replicas,
  gone: ReadonlySet<string>,
): boolean {
  if (!replicas.shared || call?.state !== 'running') return false;
  const { owner } = call;
  return owner !== '' && owner !== replicas.id && !gone.has(owner);
}

/**
 * Waits until no other replica is making a call. Resolves with its record, if there is one by then, and
 * with the replica that was making it when that has ended.
 * @throws the reason of `signal` when it aborts
 */
export async function untilFree(
  { db, replicas }: MeterStore,
  ask: CallAsk,
  signal: AbortSignal,
): Promise<{ readonly known: StoredCall | undefined; readonly gone: ReadonlySet<string> }> {
  let gone: ReadonlySet<string> = new Set();
  for (;;) {
    const known = await findCall(db, ask, ask.callId);
    if (known === undefined || !isElsewhere(known, replicas, gone)) return { known, gone };
    gone = await replicas.findDead([known.owner]);
    await sleep(LOOK_MS, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
}
