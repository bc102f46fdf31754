import type { RunKey } from '@writ/kernel';
import type { SupervisorContext } from '../../context.ts';
import { agentsToPurge } from '../../store/agent/agents.ts';
import { appendAudit } from '../../store/audit/append-audit.ts';
import {
  type CallPage,
  type CallPosition,
  FIRST_CALL,
  FIRST_TO_PURGE,
  type PurgePosition,
  purgeAgent,
  purgeCalls,
  purgeRun,
  runsToPurge,
  runsWithAgentsToPurge,
} from '../../store/run/purge-run.ts';
import { readTimeline } from '../../store/run/read-timeline.ts';
import { loadRun, type RunRow } from '../../store/run/runs.ts';
import { findSequence, replaceEntry } from '../../store/run/timeline.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import { withheldEntry } from '../../wire/withhold-entry.ts';
import { amendResult, resultEventId } from './amend-result.ts';

/** Maximum number of runs of each kind, with content of the whole run or only of agents to delete, per sweep. */
const RUNS_AT_ONCE = 20;
/** Maximum number of entries that are rewritten in one transaction; low, because reviews wait for the transaction. */
const ENTRIES_AT_ONCE = 64;
/** Time after which a run that could not be purged is retried. */
const RETRY_AFTER_MS = 60_000;
/**
 * Time after which the sweeps start again at the first run, even if more runs follow; long, so that they also reach the
 * runs behind thousands of runs that cannot be purged.
 */
const PASS_MS = 600_000;
/** Maximum number of calls whose decisions and approvals are rewritten in one transaction. */
const CALLS_AT_ONCE = 64;

/**
 * Deletes the content of runs that are not retained, and of agents whose retention is shorter than the retention of
 * their run, `purgeAfterMs` after the end of the run, so that watchers still see the result (SUP-4). Ids, digests,
 * states, totals and the audit record remain. After a crash, the run is purged again.
 */
export class RunPurger {
  readonly #whole: PurgeQueue;
  readonly #partial: PurgeQueue;

  constructor(context: SupervisorContext) {
    this.#whole = new PurgeQueue(context, runsToPurge, purgeWholeRun);
    this.#partial = new PurgeQueue(context, runsWithAgentsToPurge, purgeAgents);
  }

  /** Purges the next runs of each kind. */
  async sweep(): Promise<void> {
    await this.#whole.sweep();
    await this.#partial.sweep();
  }
}

/**
 * Purges runs page by page, from the first run to the last and then again. A run that cannot be purged does not block
 * later runs, and is not retried before {@link RETRY_AFTER_MS}, because a failed purge has read all rows of the run.
 */
class PurgeQueue {
  readonly #context: SupervisorContext;
  readonly #find: typeof runsToPurge;
  readonly #purge: typeof purgeWholeRun;
  #after: PurgePosition = FIRST_TO_PURGE;
  /** When the first page of the current pass was read, on the monotonic clock. */
  #passSince = 0;
  /** When the runs that could not be purged are retried, by tenant and id, on the monotonic clock. */
  readonly #retryAt = new Map<string, number>();

  constructor(context: SupervisorContext, find: typeof runsToPurge, purge: typeof purgeWholeRun) {
    this.#context = context;
    this.#find = find;
    this.#purge = purge;
  }

  /** Purges the next page of runs. */
  async sweep(): Promise<void> {
    const { store, clock, config } = this.#context;
    const endedBy = new Date(clock.now().getTime() - config.purgeAfterMs);
    const now = clock.monotonicMs();
    if (this.#after === FIRST_TO_PURGE) this.#passSince = now;
    const page = { endedBy, after: this.#after, limit: RUNS_AT_ONCE };
    const runs = await this.#find(store.db, page);
    // While runs end as fast as they are purged, every page is full. Failed runs must be retried also then.
    const isOver = now - this.#passSince >= PASS_MS;
    this.#after = isOver ? FIRST_TO_PURGE : positionAfter(runs);
    this.#forgetDue();
    for (const run of runs) {
      if (!this.#retryAt.has(nameOf(run))) await this.#purgeOne(run);
    }
  }

  async #purgeOne(run: RunRow): Promise<void> {
    const { telemetry, clock } = this.#context;
    try {
      await this.#purge(this.#context, run);
    } catch (error) {
      const { tenant, run_id } = run;
      telemetry.log.error({ err: error, tenant, run_id }, 'failed to purge a run');
      this.#retryAt.set(nameOf(run), clock.monotonicMs() + RETRY_AFTER_MS);
    }
  }

  #forgetDue(): void {
    const now = this.#context.clock.monotonicMs();
    for (const [name, at] of this.#retryAt) if (at <= now) this.#retryAt.delete(name);
  }
}

/** Returns the position at which the next sweep continues: after the last page, the first one. */
function positionAfter(page: readonly RunRow[]): PurgePosition {
  const last = page.at(RUNS_AT_ONCE - 1);
  if (last === undefined) return FIRST_TO_PURGE;
  const { tenant, run_id, ended_at } = last;
  return { tenant, run_id, ended_at };
}

function nameOf({ tenant, run_id: runId }: RunRow): string {
  return `${tenant}/${runId}`;
}

/** Deletes the content of a run and of all its agents. */
async function purgeWholeRun(context: SupervisorContext, run: RunRow): Promise<void> {
  const { store, clock } = context;
  const key = { tenant: run.tenant, runId: run.run_id };
  await purgeTimeline(context, key);
  await purgeAllCalls(context, key);
  await store.transaction(
    async (trx) => {
      const now = clock.now();
      const current = await loadRun(trx, key);
      if (current.purged_at !== null) return;
      await purgeRun(trx, current, now);
      await purgeResult(trx, key);
      const { retention, root_instance: instance } = run;
      const facts = { retention };
      await appendAudit(trx, { ...key, instance, kind: 'run_purged', facts }, now);
    },
    { run: key, background: true },
  );
}

/**
 * Deletes the content of agents whose retention is shorter than the retention of their run; by default, these are all
 * children. The timeline and the result keep the steps of these agents by name and digest.
 */
async function purgeAgents(context: SupervisorContext, run: RunRow): Promise<void> {
  const { store, clock } = context;
  const key = { tenant: run.tenant, runId: run.run_id };
  const pending = new Set((await agentsToPurge(store.db, key)).map(({ instance }) => instance));
  await purgeTimeline(context, key, pending);
  await purgeAllCalls(context, key, pending);
  await store.transaction(
    async (trx) => {
      const now = clock.now();
      for (const agent of await agentsToPurge(trx, key)) {
        await purgeAgent(trx, agent, !pending.has(agent.parent_instance ?? ''));
        const { instance, retention } = agent;
        const facts = { retention };
        await appendAudit(trx, { ...key, instance, kind: 'agent_purged', facts }, now);
      }
      await amendResult(trx, await loadRun(trx, key));
    },
    { run: key, background: true },
  );
}

/**
 * Deletes the content of timeline entries.
 * @param agents instances whose entries lose their content; omitted for all agents
 */
async function purgeTimeline(
  { store }: SupervisorContext,
  key: RunKey,
  agents?: ReadonlySet<string>,
): Promise<void> {
  let after = 0;
  let count: number;
  do {
    const page = { after, limit: ENTRIES_AT_ONCE };
    count = await store.transaction((trx) => purgeEntries(trx, key, page, agents), {
      run: key,
      background: true,
    });
    // Sequences have no gaps (HK-1), so `after + count` is the sequence of the last entry that was read.
    after += count;
  } while (count === ENTRIES_AT_ONCE);
}

/**
 * Deletes the content of decisions and approvals.
 * @param agents instances whose calls lose their content; omitted for all agents
 */
async function purgeAllCalls(
  { store }: SupervisorContext,
  key: RunKey,
  agents?: ReadonlySet<string>,
): Promise<void> {
  let after: CallPosition | undefined = FIRST_CALL;
  while (after !== undefined) {
    const page: CallPage = { after, limit: CALLS_AT_ONCE };
    after = await store.transaction((trx) => purgeCalls(trx, key, page, agents), {
      run: key,
      background: true,
    });
  }
}

/** Deletes the content of the result, which a late receipt may have amended after its entry was purged. */
async function purgeResult(trx: SupervisorTransaction, key: RunKey): Promise<void> {
  const sequence = await findSequence(trx, { ...key, eventId: resultEventId(key.runId) });
  if (sequence !== undefined) await purgeEntries(trx, key, { after: sequence - 1, limit: 1 });
}

/** Deletes the content of at most `limit` entries after a sequence; returns how many entries it read. */
async function purgeEntries(
  trx: SupervisorTransaction,
  key: RunKey,
  { after, limit }: { readonly after: number; readonly limit: number },
  agents?: ReadonlySet<string>,
): Promise<number> {
  const rows = await readTimeline(trx, key, after, limit);
  for (const { sequence, entry } of rows) {
    const withheld = withheldEntry(entry, agents);
    if (withheld !== undefined) await replaceEntry(trx, key, sequence, withheld);
  }
  return rows.length;
}
