import { InternalError } from '@writ/kernel';
import type { PendingReceipt } from '../../domain/calls/tool-call.ts';
import { appendItems, loadItems, type SnapshotRow, saveSnapshot } from '../../store/snapshots.ts';
import type { WorkerStore } from '../../store/worker-store.ts';
import type { Checkpoint, Restored } from '../agent.ts';
import type { LeaseSession } from '../leases/lease-session.ts';
import type { PendingReceipts } from '../pending-receipts.ts';
import type { Commits } from './commits.ts';
import type { BranchCursor, Journal } from './journal.ts';

/**
 * The checkpoints of a long-running agent. Replays start at the latest checkpoint instead of the beginning of the
 * journal (RT-1). A checkpoint is committed with the preceding entries, so that journal and state are consistent.
 */
export class Checkpoints {
  readonly #session: LeaseSession;
  readonly #journal: Journal;
  readonly #commits: Commits;
  readonly #carried: PendingReceipts;
  readonly #store: WorkerStore;
  readonly #latest: SnapshotRow | undefined;
  #items: number;

  constructor(parts: {
    readonly session: LeaseSession;
    readonly journal: Journal;
    readonly commits: Commits;
    readonly carried: PendingReceipts;
    readonly store: WorkerStore;
    /** The snapshot at which the loaded journal starts. */
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
   * Restores the latest checkpoint.
   * @throws CodeMismatched when the agent called restore at another position before it saved the checkpoint;
   *   InternalError CHECKPOINT_IN_BRANCH
   */
  async restore(cursor: BranchCursor): Promise<Restored | undefined> {
    assertOutsideBranch(cursor);
    this.#journal.restore(cursor);
    if (this.#latest === undefined) return undefined;
    const { state, receipts, items_from: from } = this.#latest;
    this.#carried.restore(JSON.parse(receipts) as PendingReceipt[]);
    const items = await loadItems(this.#store.db, this.#session.lease, from);
    return { state: JSON.parse(state), items };
  }

  /**
   * Saves a checkpoint with the next commit.
   * @throws CodeMismatched when the agent has not requested all journaled operations before this position;
   *   InternalError CHECKPOINT_IN_BRANCH, or CHECKPOINT_UNEXPECTED when the agent has not called restore
   */
  take(cursor: BranchCursor, { state, added = [], needsFrom = 0 }: Checkpoint): void {
    assertOutsideBranch(cursor);
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
      // Serialized now, because the agent may change the state later.
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

function assertOutsideBranch({ branch }: BranchCursor): void {
  if (branch === '') return;
  throw new InternalError(
    'CHECKPOINT_IN_BRANCH',
    'A checkpoint cannot be saved or restored inside a branch.',
    { branch },
  );
}
