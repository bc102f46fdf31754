import { setTimeout as sleep } from 'node:timers/promises';
import type { CallKey } from '@writ/kernel';
import type { Replicas } from '@writ/store';
import { type CallRow, findCall } from '../../store/calls.ts';
import type { GatewayStore } from '../../store/gateway-store.ts';

/** How often a call that another replica owns is read. */
const POLL_INTERVAL_MS = 50;

/** Whether another replica, which is not one of `deadReplicas`, is working on a call (TG-1). */
export function isOwnedByPeer(
  call: Pick<CallRow, 'state' | 'owner'> | undefined,
  replicas: Replicas,
  deadReplicas: ReadonlySet<string>,
): boolean {
  if (!replicas.shared || call?.state !== 'intent') return false;
  const { owner } = call;
  return owner !== '' && owner !== replicas.id && !deadReplicas.has(owner);
}

/** The owner of a call if that replica is dead; an empty set otherwise. */
export async function deadOwner(
  { db, replicas }: GatewayStore,
  key: CallKey,
): Promise<ReadonlySet<string>> {
  if (!replicas.shared) return new Set();
  const call = await findCall(db, key);
  if (call?.state !== 'intent' || call.owner === '') return new Set();
  return await replicas.findDead([call.owner]);
}

/**
 * Waits until no other replica works on a call. Resolves to the owner if that replica died.
 * @throws the reason of `signal` when it aborts
 */
export async function waitUntilUnowned(
  store: GatewayStore,
  key: CallKey,
  signal: AbortSignal,
): Promise<ReadonlySet<string>> {
  for (;;) {
    const dead = await deadOwner(store, key);
    if (!isOwnedByPeer(await findCall(store.db, key), store.replicas, dead)) return dead;
    await sleep(POLL_INTERVAL_MS, undefined, { signal }).catch(() => signal.throwIfAborted());
  }
}
