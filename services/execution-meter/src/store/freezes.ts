import { prepareQuery } from '@writ/store';
import {
  type AgentKey,
  type Freeze,
  type FreezeCause,
  type FreezeScope,
  scopeKey,
  scopesOver,
  strongest,
} from '../domain/freeze.ts';
import type { MeterReader, MeterTransaction } from './meter-store.ts';
import type { StoredTab } from './tabs.ts';

const SCOPES_AT_ONCE = 500;

/** The freeze that covers an agent, the strongest when there are several; undefined without one. */
export async function freezeOver(db: MeterReader, agent: AgentKey): Promise<Freeze | undefined> {
  const [everything, tenant, run, instance] = scopesOver(agent);
  const { rows } = await selectInForce(db, { everything, tenant, run, instance });
  if (rows.length === 0) return undefined;
  // In order here and not in SQL, which would sort for every call what is hardly ever there.
  const inOrder = rows.toSorted((a, b) => a.ordered_at.getTime() - b.ordered_at.getTime());
  return strongest(
    inOrder.map((row) => ({
      orderId: row.order_id,
      cause: row.cause as FreezeCause,
      reason: row.reason,
      orderedBy: row.ordered_by,
    })),
  );
}

/** The orders in force for any of these agents, by scope; the strongest where one scope has several. */
export async function freezesAmong(
  db: MeterReader,
  agents: readonly AgentKey[],
): Promise<ReadonlyMap<string, Freeze>> {
  const scopes = [...new Set(agents.flatMap(scopesOver))];
  const found = new Map<string, Freeze>();
  for (let from = 0; from < scopes.length; from += SCOPES_AT_ONCE) {
    const rows = await db
      .selectFrom('freezes')
      .select(['scope', 'order_id', 'cause', 'reason', 'ordered_by'])
      .where('scope', 'in', scopes.slice(from, from + SCOPES_AT_ONCE))
      .where('lifted_at', 'is', null)
      .orderBy('ordered_at')
      .execute();
    for (const { scope, order_id: orderId, ordered_by: orderedBy, cause, reason } of rows) {
      const freeze = { orderId, cause: cause as FreezeCause, reason, orderedBy };
      const known = found.get(scope);
      found.set(scope, strongest(known === undefined ? [freeze] : [known, freeze]) ?? freeze);
    }
  }
  return found;
}

interface ScopeTexts {
  readonly everything: string;
  readonly tenant: string;
  readonly run: string;
  readonly instance: string;
}

const selectInForce = prepareQuery((db: MeterReader, scopes: ScopeTexts) =>
  db
    .selectFrom('freezes')
    .select(['order_id', 'cause', 'reason', 'ordered_by', 'ordered_at'])
    .where('scope', 'in', [scopes.everything, scopes.tenant, scopes.run, scopes.instance])
    .where('lifted_at', 'is', null),
);

/** An order to be recorded. */
export interface NewFreeze {
  readonly freeze: Freeze;
  readonly scope: FreezeScope;
  readonly orderedAt: Date;
  /** The order says itself that the run's recorded answers go. */
  readonly purges: boolean;
}

/** Whether the run of a tab has ended, and no answer of it is kept any more (SUP-4). */
export async function isPurged(
  db: MeterReader,
  { tenant, runId, retention }: Pick<StoredTab, 'tenant' | 'runId' | 'retention'>,
): Promise<boolean> {
  const { rows } = await selectEndings(db, { run: scopeKey({ tenant, runId }) });
  return rows.length > 0 && (retention !== 'permanent' || rows.some(({ purges }) => purges));
}

const selectEndings = prepareQuery((db: MeterReader, { run }: Pick<ScopeTexts, 'run'>) =>
  db
    .selectFrom('freezes')
    .select('purges')
    .where('scope', '=', run)
    .where('cause', '=', 'end')
    .where('lifted_at', 'is', null),
);

/**
 * Records an order; one with an id that is there already changes nothing. Answers with the order as it
 * stands.
 */
export async function insertFreeze(
  trx: MeterTransaction,
  { freeze, scope, orderedAt, purges }: NewFreeze,
): Promise<{ readonly scope: string; readonly lifted: boolean }> {
  const known = await trx
    .selectFrom('freezes')
    .select(['scope', 'lifted_at'])
    .where('order_id', '=', freeze.orderId)
    .executeTakeFirst();
  if (known !== undefined) return { scope: known.scope, lifted: known.lifted_at !== null };
  await trx
    .insertInto('freezes')
    .values({
      order_id: freeze.orderId,
      scope: scopeKey(scope),
      cause: freeze.cause,
      reason: freeze.reason,
      ordered_by: freeze.orderedBy,
      ordered_at: orderedAt,
      lifted_at: null,
      purges,
    })
    .execute();
  return { scope: scopeKey(scope), lifted: false };
}

/** Lifts one order and no other; answers whether it was in force (SV-9). */
export async function liftFreeze(
  trx: MeterTransaction,
  orderId: string,
  at: Date,
): Promise<boolean> {
  const { numUpdatedRows } = await trx
    .updateTable('freezes')
    .set({ lifted_at: at })
    .where('order_id', '=', orderId)
    .where('lifted_at', 'is', null)
    .executeTakeFirst();
  return numUpdatedRows > 0n;
}
