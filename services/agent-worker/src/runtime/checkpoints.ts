import { InternalError } from '@writ/kernel';
import type { PendingReceipt } from '../domain/calls/tool-call.ts';
import { appendItems, loadItems, type SnapshotRow, saveSnapshot } from '../store/snapshots.ts';
import type { WorkerStore } from '../store/worker-store.ts';
import type { Checkpoint, Restored } from './agent.ts';
import type { Commits } from './commits.ts';
import type { BranchCursor, Journal } from './journal.ts';
import type { PendingReceipts } from './pending-receipts.ts';
import type { Session } from './session.ts';

/**
 * Where a long agent goes on from: its own state, in place of everything that it did before (RT-1). A
 * checkpoint is committed with the entries before it, so that the journal and the state never disagree.
 */
export class Checkpoints {
  readonly #session: Session;
  readonly #journal: Journal;
  readonly #commits: Commits;
  readonly #carried: PendingReceipts;
  readonly #store: WorkerStore;
  readonly #latest: SnapshotRow | undefined;
  #items: number;

  constructor(parts: {
    readonly session: Session;
    readonly journal: Journal;
    readonly commits: Commits;
    readonly carried: PendingReceipts;
    readonly store: WorkerStore;
    /** The snapshot that the journal was read from. */
    readonly latest: SnapshotRow | undefined;
  }) {
    this.#session = parts.session;
    this.#journal = parts.journal;
    this.#commits = parts.commits;
    this.#carried = parts.carried;
    this.#store = parts.store;
    this.#latest = parts.latest;
    this.#items = parts.latest?.items ?? 0;
  }

  /**
   * Takes the agent to its latest checkpoint.
   * @throws DataLossError JOURNAL_DIVERGENCE when it comes here from another place than it did before
   */
  async restore(cursor: BranchCursor): Promise<Restored | undefined> {
    assertAlone(cursor);
    this.#journal.restore(cursor);
    if (this.#latest === undefined) return undefined;
    const { state, receipts, items_from: from } = this.#latest;
    this.#carried.restore(JSON.parse(receipts) as PendingReceipt[]);
    const items = await loadItems(this.#store.db, this.#session.lease, from);
    return { state: JSON.parse(state), items };
  }

  /**
   * Has the agent go on from here the next time it runs, once what it did is committed.
   * @throws DataLossError JOURNAL_DIVERGENCE when the journal has something before this place that it
   *   has not asked for
   */
  take(cursor: BranchCursor, { state, added = [], needsFrom = 0 }: Checkpoint): void {
    assertAlone(cursor);
    const place = this.#journal.fold(cursor);
    const first = this.#items;
    this.#items += added.length;
    const { tenant, runId: run_id, instance } = this.#session.lease;
    const snapshot = {
      tenant,
      run_id,
      instance,
      ...place,
      items: this.#items,
      items_from: needsFrom,
      // What the agent changes later is not part of it.
      state: JSON.stringify(state),
      receipts: JSON.stringify(this.#carried.waiting),
    };
    const items = [...added];
    this.#commits.add(async (trx, saved_at) => {
      await appendItems(trx, this.#session.lease, first, items);
      await saveSnapshot(trx, { ...snapshot, saved_at });
    });
  }
}

function assertAlone({ branch }: BranchCursor): void {
  if (branch === '') return;
  throw new InternalError(
    'CHECKPOINT_IN_BRANCH',
    'A checkpoint stands between steps, not inside a branch of one.',
    { branch },
  );
}
