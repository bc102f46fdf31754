import { NotFoundError } from '@writ/kernel';
import type { Caps } from '../domain/ledger/amount.ts';
import type { Balance } from '../domain/ledger/balance.ts';
import { capsAfterRunChange } from '../domain/ledger/inherited-caps.ts';
import { capColumns, levelCaps, toBalance } from './balance-rows.ts';
import { forgetBalance, type SetCaps } from './balances.ts';
import { rowIds } from './level-ids.ts';
import type { MeterReader, MeterTransaction } from './meter-store.ts';
import { instancesOf } from './tabs.ts';

/**
 * Sets the caps of a run at run time. An agent whose cap in a dimension equals the cap of the run, such as the root or
 * a child that inherited the cap, gets the new cap; other caps of agents are unchanged (EM-1, EM-3).
 * @throws NotFoundError TAB_NOT_FOUND when the run has no tab
 */
export async function setRunCaps(trx: MeterTransaction, request: SetCaps): Promise<void> {
  const { tenant, runId, caps = {}, setBy } = request;
  const before = await readRun(trx, { tenant, runId });
  const agents = (await instancesOf(trx, { tenant, runId })).map(
    (instance) => rowIds({ tenant, runId, instance, sessionId: '', day: '' }).agent,
  );
  const rows = await trx.selectFrom('balances').selectAll().where('id', 'in', agents).execute();
  await setCaps(trx, runRowId({ tenant, runId }), caps, setBy);
  for (const row of rows) {
    const change = { before: before.caps, after: caps };
    const changed = capsAfterRunChange(levelCaps(row).caps, change);
    if (changed !== undefined) await setCaps(trx, row.id, changed, setBy);
  }
}

/**
 * Returns the account of a run.
 * @throws NotFoundError TAB_NOT_FOUND
 */
export async function readRun(db: MeterReader, run: RunKey): Promise<Balance> {
  const row = await db
    .selectFrom('balances')
    .selectAll()
    .where('id', '=', runRowId(run))
    .executeTakeFirst();
  if (row !== undefined) return toBalance('run', row);
  throw new NotFoundError('TAB_NOT_FOUND', `Run ${run.runId} has no tab.`, { run_id: run.runId });
}

type RunKey = Pick<SetCaps, 'tenant' | 'runId'>;

function runRowId(run: RunKey): string {
  return rowIds({ ...run, instance: '', sessionId: '', day: '' }).run;
}

async function setCaps(
  trx: MeterTransaction,
  id: string,
  caps: Caps,
  setBy: string,
): Promise<void> {
  await trx
    .updateTable('balances')
    .set({ ...capColumns(caps), caps_set_by: setBy })
    .where('id', '=', id)
    .execute();
  forgetBalance(trx, id);
}
