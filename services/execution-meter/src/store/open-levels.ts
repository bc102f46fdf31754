import { type Caps, DIMENSIONS } from '../domain/ledger/amount.ts';
import { type Balance, emptyBalance } from '../domain/ledger/balance.ts';
import { sessionCapsAfter } from '../domain/ledger/session-caps.ts';
import { capColumns, insertLevels, insertRun, updateCaps } from './balance-rows.ts';
import { cacheBalance, isTenantLevel } from './balances.ts';
import { type LevelsKey, rowIds, sliceIds } from './level-ids.ts';
import type { MeterTransaction } from './meter-store.ts';
import { AllSlicesRequired, type SliceAccess } from './slices/slice-access.ts';

/** Caps of the levels that a tab opens; undefined leaves the caps of an existing level unchanged. */
export interface OpenedCaps {
  readonly agent: Caps;
  readonly run: Caps | undefined;
  readonly session: Caps | undefined;
}

/**
 * The caps of a new tab, the slices that its transaction may access, and all levels as the transaction has read them.
 */
export interface LevelsOpening {
  readonly opened: OpenedCaps;
  readonly access: SliceAccess;
  readonly before: readonly Balance[];
}

/**
 * Inserts the missing levels of a new tab in one statement, sets the caps of an existing run, and lowers the caps of an
 * existing session. Returns all levels after these changes.
 * @throws AllSlicesRequired when the caps of the session change and other transactions of the tenant may be open
 */
export async function openLevels(
  trx: MeterTransaction,
  key: LevelsKey,
  { opened, access, before }: LevelsOpening,
): Promise<Balance[]> {
  const ids = rowIds(key);
  const caps = { agent: opened.agent, run: opened.run ?? {}, session: opened.session ?? {} };
  const session = before.find(({ level }) => level === 'session');
  const isLowered =
    session !== undefined && differs(session, sessionCapsAfter(session, opened.session));
  if (access.reach === 'own' && isLowered) throw new AllSlicesRequired();
  const row = {
    agent: ids.agent,
    agent_tokens: caps.agent.tokens ?? null,
    agent_cost: caps.agent.cost ?? null,
    agent_turns: caps.agent.turns ?? null,
    run: ids.run,
    run_tokens: caps.run.tokens ?? null,
    run_cost: caps.run.cost ?? null,
    run_turns: caps.run.turns ?? null,
  };
  const { rows } =
    access.reach === 'own'
      ? await insertRun(trx, { ...row, session: sliceIds(key, access.slice).session })
      : await insertLevels(trx, {
          ...row,
          session: ids.session,
          session_tokens: caps.session.tokens ?? null,
          session_cost: caps.session.cost ?? null,
          session_turns: caps.session.turns ?? null,
        });
  const inserted = new Set(rows.map(({ id }) => id));
  const after: Balance[] = [];
  for (const balance of before) {
    const { level } = balance;
    if (isTenantLevel(level) || (level === 'session' && access.reach === 'own'))
      after.push(balance);
    else if (level === 'session' && inserted.has(ids[level])) {
      // Keeps the sums, because other slices of the session may already have rows.
      const created = { ...balance, caps: caps.session };
      cacheBalance(trx, ids[level], created);
      after.push(created);
    } else if (inserted.has(ids[level])) {
      const empty = emptyBalance(level, caps[level]);
      cacheBalance(trx, ids[level], empty);
      after.push(empty);
    } else {
      const next = level === 'session' ? sessionCapsAfter(balance, opened.session) : opened[level];
      after.push(await setCaps(trx, ids[level], balance, next));
    }
  }
  return after;
}

/** Sets the caps of an existing level, if they are given and differ. */
async function setCaps(
  trx: MeterTransaction,
  id: string,
  before: Balance,
  caps: Caps | undefined,
): Promise<Balance> {
  if (caps === undefined || !differs(before, caps)) return before;
  await updateCaps(trx, { id, ...capColumns(caps) });
  const after = { ...before, caps };
  cacheBalance(trx, id, after);
  return after;
}

/** Whether `caps` differ from the caps of a level; false if `caps` is undefined. */
function differs({ caps: before }: Balance, caps: Caps | undefined): boolean {
  return caps !== undefined && DIMENSIONS.some((name) => before[name] !== caps[name]);
}
