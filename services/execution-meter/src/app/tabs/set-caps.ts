import { InternalError } from '@writ/kernel';
import type { MeterContext } from '../../context.ts';
import { requestIdReused } from '../../domain/id-reused.ts';
import { type Balance, dayOf } from '../../domain/ledger/balance.ts';
import { readScopeLevels, type SetCaps, setLevelCaps } from '../../store/balances.ts';
import { recordCapChange } from '../../store/cap-changes.ts';
import type { MeterTransaction } from '../../store/meter-store.ts';
import { readRun, setRunCaps } from '../../store/run-caps.ts';

/**
 * Sets the caps of a run, a session or a tenant at run time; they apply to reservations that begin afterwards (EM-3). A
 * repeated request changes nothing, even if the caps were changed since the first request. Returns the balance with the
 * caps in effect.
 * @throws InvalidRequestError REQUEST_ID_REUSED; NotFoundError TAB_NOT_FOUND for a run without a tab
 */
export function setCaps(
  { store, clock, catalog }: MeterContext,
  request: { readonly requestId: string; readonly requestDigest: string },
  change: SetCaps,
): Promise<Balance> {
  const { tenant, level, setBy } = change;
  const work = async (trx: MeterTransaction): Promise<Balance> => {
    const at = clock.now();
    const repeated = await recordCapChange(trx, { ...request, tenant, setBy }, at);
    if (repeated === undefined) await set(trx, change);
    else if (repeated !== request.requestDigest) throw requestIdReused();
    if (level === 'run') return await readRun(trx, change);
    const sessionId = level === 'session' ? change.sessionId : undefined;
    const scope = { tenant, sessionId, day: dayOf(at) };
    const levels = await readScopeLevels(trx, scope, catalog.tenantCaps(tenant));
    const balance = levels.find((each) => each.level === level);
    if (balance === undefined) throw new InternalError('INTERNAL', `No balance of level ${level}.`);
    return balance;
  };
  return store.transaction(work, { tenant });
}

async function set(trx: MeterTransaction, change: SetCaps): Promise<void> {
  const { level } = change;
  if (level === 'run') await setRunCaps(trx, change);
  else await setLevelCaps(trx, { ...change, level });
}
