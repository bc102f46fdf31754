import { UnavailableError } from '@writ/kernel';
import type { SupervisorContext } from '../../context.ts';
import { lastUnlinked } from '../../store/audit-chain/link-audit.ts';
import { awaitChange } from '../../store/change/change-alarm.ts';

/**
 * Waits until every record that was committed before the call is linked into the chain of its tenant, so that a
 * reader sees the records of all earlier responses.
 * @throws UnavailableError AUDIT_CHAIN_LAGGING; what `signal` was aborted with
 */
export async function awaitLinked(
  { store, config }: Pick<SupervisorContext, 'store' | 'config'>,
  tenant: string,
  signal: AbortSignal,
): Promise<void> {
  const last = await lastUnlinked(store.db, tenant);
  if (last === undefined) return;
  const enough = AbortSignal.any([signal, AbortSignal.timeout(config.auditWaitMs)]);
  const unlinked = await awaitChange({
    changes: store.changes,
    topic: 'audit-linked',
    pollMs: config.watchPollMs,
    signal: enough,
    read: () => lastUnlinked(store.db, tenant, last),
    isEnough: (record) => record === undefined,
  });
  if (unlinked === undefined) return;
  signal.throwIfAborted();
  throw new UnavailableError(
    'AUDIT_CHAIN_LAGGING',
    `The audit records of tenant ${tenant} were not all linked within ${config.auditWaitMs} ms; retry.`,
    { tenant },
  );
}
