import { WakeableLoop } from '@writ/kernel';
import { COMMIT_DELAY_MS, nextFlush, type TransactionOptions } from '@writ/store';
import type { Telemetry } from '@writ/telemetry';
import type { SupervisorConfig } from '../../config.ts';
import { holdLease, releaseLease } from '../../store/audit/lease.ts';
import { hasUnlinked, linkAudit } from '../../store/audit/link-audit.ts';
import type { SupervisorStore, SupervisorTransaction } from '../../store/supervisor-store.ts';
import { CheckpointAppender } from './checkpoint-appender.ts';
import type { CheckpointFile } from './checkpoint-file.ts';
import { type SigningParts, signCheckpoints } from './sign-checkpoints.ts';

/**
 * Maximum number of records linked in one transaction; lower if one process owns the database (SQLite), because the
 * reviews of the process wait for this transaction.
 */
const BATCH = { own: 32, shared: 256 } as const;
/** Only the chainer links records and changes chains. */
const RESOURCE = 'audit-chains';

/** The dependencies of the chainer. */
export interface ChainerParts extends SigningParts {
  readonly store: SupervisorStore;
  readonly telemetry: Pick<Telemetry, 'log'>;
  /**
   * Whether the clock is known to be wrong. A replica with a wrong clock must not acquire the lease, because the expiry
   * time would block other replicas (BD-3).
   */
  readonly isClockSkewed: () => boolean;
  /** Where checkpoints are kept outside the database. */
  readonly checkpointFile?: CheckpointFile | undefined;
  readonly config: SigningParts['config'] &
    Pick<SupervisorConfig, 'replica' | 'auditBatchWindowMs' | 'auditPollMs' | 'auditLeaseMs'>;
}

/**
 * Links audit records into the chains of their tenants, outside the transactions that wrote them, and signs checkpoints
 * (SV-8). Only the replica that holds the lease does so; each of its transactions acquires or renews the lease. The
 * chainer runs after commits and at an interval.
 */
export class AuditChainer {
  readonly #parts: ChainerParts;
  readonly #appender: CheckpointAppender | undefined;
  readonly #loop: WakeableLoop;
  #unsubscribe: (() => void) | undefined;
  #isStopped = false;

  constructor(parts: ChainerParts) {
    this.#parts = parts;
    const { config, telemetry, checkpointFile } = parts;
    this.#appender = checkpointFile && new CheckpointAppender({ ...parts, checkpointFile });
    this.#loop = new WakeableLoop({
      pass: async () => {
        // Waits until the next flush, so that records that were committed together are linked in one transaction, which
        // shares its commit with timeline writes.
        await nextFlush(config.auditBatchWindowMs);
        await this.pass();
      },
      intervalMs: config.auditPollMs,
      backoff: { baseMs: config.auditPollMs, maxMs: config.auditPollMs },
      onError: (error) =>
        telemetry.log.error({ err: error }, 'failed to link audit records; retrying'),
    });
  }

  /** Starts with the records that a previous process left unlinked. */
  start(): void {
    this.#unsubscribe = this.#parts.store.changes.subscribe('audit', () => this.#loop.wake());
    this.#loop.start();
  }

  /** Starts no further batch and releases the lease. */
  async stop(): Promise<void> {
    this.#unsubscribe?.();
    this.#isStopped = true;
    await this.#loop.stop();
    await this.#release();
  }

  /** Links all records and signs due checkpoints, if this replica holds the lease and its clock is not skewed. */
  async pass(): Promise<void> {
    const { store, isClockSkewed } = this.#parts;
    if (isClockSkewed()) return;
    await this.#appender?.complete();
    let isMore = await hasUnlinked(store.db);
    // Further batches are a backlog and are committed without waiting for other transactions.
    for (let commitDelayMs = COMMIT_DELAY_MS; isMore && !this.#isStopped; commitDelayMs = 0) {
      const linked = await this.#link(commitDelayMs);
      if (linked === undefined) return;
      isMore = linked === this.#batch;
    }
    await signCheckpoints(this.#parts, {
      asHolder: (work) => this.#asHolder(work),
      isStopped: () => this.#isStopped,
      appender: this.#appender,
    });
  }

  /** Links a batch; returns the number of records, undefined when another replica holds the lease. */
  async #link(commitDelayMs: number): Promise<number | undefined> {
    const { chainGuard } = this.#parts;
    const batch = await this.#asHolder(
      async (trx, now) => {
        const linked = await linkAudit(trx, this.#batch, now);
        for (const before of linked.before) {
          await chainGuard.check(before, chainGuard.mark(before.tenant), trx);
        }
        return linked;
      },
      { commitDelayMs },
    );
    for (const mark of batch?.after ?? []) chainGuard.remember(mark);
    return batch?.records;
  }

  /** Runs `work` while holding the lease; returns undefined when another replica holds it. */
  async #asHolder<T>(
    work: (trx: SupervisorTransaction, now: Date) => Promise<T>,
    options: Pick<TransactionOptions, 'commitDelayMs'> = {},
  ): Promise<T | undefined> {
    const { store, clock } = this.#parts;
    return await store.transaction(
      async (trx) => {
        const now = clock.now();
        return (await holdLease(trx, this.#lease, now)) ? await work(trx, now) : undefined;
      },
      { resource: RESOURCE, background: true, ...options },
    );
  }

  async #release(): Promise<void> {
    const { store, telemetry } = this.#parts;
    try {
      await store.transaction((trx) => releaseLease(trx, this.#lease), {
        resource: RESOURCE,
        background: true,
      });
    } catch (error) {
      telemetry.log.warn({ err: error }, 'failed to release the audit chainer lease; it expires');
    }
  }

  get #batch(): number {
    return this.#parts.store.replicas.shared ? BATCH.shared : BATCH.own;
  }

  get #lease() {
    const { replica, auditLeaseMs } = this.#parts.config;
    return { name: 'audit-chainer', holder: replica, ttlMs: auditLeaseMs };
  }
}
