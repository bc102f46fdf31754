import type { SupervisorContext } from '../../context.ts';
import { appendAudit } from '../../store/audit.ts';
import { purgeRun, runsToPurge } from '../../store/run/purge-run.ts';
import { loadRun, type RunRow } from '../../store/run/runs.ts';
import { readTimeline, replaceEntry } from '../../store/run/timeline.ts';
import { withheldEntry } from '../../wire/withhold-entry.ts';

const RUNS_AT_ONCE = 20;
/** Entries rewritten in one transaction; low, because reviews wait for the transaction. */
const ENTRIES_AT_ONCE = 64;

/**
 * Sweep: deletes the content of runs that are not retained, `purgeAfterMs` after their end, so that watchers still
 * see the result (SUP-4). Ids, digests, states, totals and the audit record remain. After a crash, the run is
 * purged again.
 */
export async function purgeRuns(context: SupervisorContext): Promise<void> {
  const { store, clock, config } = context;
  const endedBy = new Date(clock.now().getTime() - config.purgeAfterMs);
  for (const run of await runsToPurge(store.db, endedBy, RUNS_AT_ONCE)) {
    await purgeTimeline(context, run);
    await store.transaction(
      async (trx) => {
        const key = { tenant: run.tenant, runId: run.run_id };
        const now = clock.now();
        const current = await loadRun(trx, key);
        if (current.purged_at !== null) return;
        await purgeRun(trx, current, now);
        const { retention, root_instance: instance } = run;
        const facts = { retention };
        await appendAudit(trx, { ...key, instance, kind: 'run_purged', facts }, now);
      },
      { background: true },
    );
  }
}

async function purgeTimeline({ store }: SupervisorContext, run: RunRow): Promise<void> {
  const key = { tenant: run.tenant, runId: run.run_id };
  let last = 0;
  while (true) {
    const rows = await readTimeline(store.db, key, last, ENTRIES_AT_ONCE);
    const end = rows.at(-1);
    if (end === undefined) return;
    await store.transaction(
      async (trx) => {
        for (const { sequence, entry } of rows) {
          const withheld = withheldEntry(entry);
          if (withheld !== undefined) await replaceEntry(trx, key, sequence, withheld);
        }
      },
      { background: true },
    );
    last = end.sequence;
  }
}
