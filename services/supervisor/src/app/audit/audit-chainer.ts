import { AsyncLocalStorage } from 'node:async_hooks';
import { mintCheckpoint, type Signer } from '@writ/identity';
import type { Clock } from '@writ/kernel';
import { nextFlush } from '@writ/store';
import type { Telemetry } from '@writ/telemetry';
import type { SupervisorConfig } from '../../config.ts';
import {
  type ChainEnd,
  chainsToSign,
  saveCheckpoint,
} from '../../store/audit-chain/checkpoints.ts';
import { holdLease, releaseLease } from '../../store/audit-chain/lease.ts';
import { hasUnlinked, linkAudit } from '../../store/audit-chain/link-audit.ts';
import { ChangeAlarm } from '../../store/change/change-alarm.ts';
import type { SupervisorStore, SupervisorTransaction } from '../../store/supervisor-store.ts';

/** Records linked in one transaction; low, because reviews wait for the transaction. */
const BATCH = 32;

/** The dependencies of the chainer. */
export interface ChainerParts {
  readonly store: SupervisorStore;
  readonly signer: Signer;
  readonly clock: Clock;
  readonly telemetry: Pick<Telemetry, 'log'>;
  readonly config: Pick<
    SupervisorConfig,
    | 'replica'
    | 'auditBatchWindowMs'
    | 'auditPollMs'
    | 'auditLeaseMs'
    | 'auditCheckpointRecords'
    | 'auditCheckpointMs'
  >;
}

/**
 * Links audit records into the chains of their tenants, outside the transactions that wrote them, and signs
 * checkpoints (SV-8). One replica at a time does so: the linking transaction holds a lease. Commits wake the
 * chainer; it also polls.
 */
export class AuditChainer {
  readonly #parts: ChainerParts;
  readonly #stopping = new AbortController();
  readonly #alarm = new ChangeAlarm(this.#stopping.signal);
  // A caller of ring() may be inside a transaction, which the loop must not inherit.
  readonly #outside = AsyncLocalStorage.snapshot();
  #unsubscribe: (() => void) | undefined;
  #loop: Promise<void> | undefined;

  constructor(parts: ChainerParts) {
    this.#parts = parts;
  }

  /** Starts with the records that a previous process left unlinked. */
  start(): void {
    this.#unsubscribe = this.#parts.store.changes.subscribe('audit', () => this.#alarm.ring());
    this.#loop = this.#outside(() => this.#run());
  }

  /** Starts no further batch and releases the lease. */
  async stop(): Promise<void> {
    this.#unsubscribe?.();
    this.#stopping.abort();
    await this.#loop;
    this.#alarm.close();
  }

  /** Links all records and signs due checkpoints, if this replica holds the lease. */
  async pass(): Promise<void> {
    const { store } = this.#parts;
    let isMore = await hasUnlinked(store.db);
    while (isMore && !this.#stopping.signal.aborted) {
      const linked = await this.#asHolder((trx, now) => linkAudit(trx, BATCH, now));
      if (linked === undefined) return;
      isMore = linked === BATCH;
    }
    await this.#sign();
  }

  async #run(): Promise<void> {
    const { config, telemetry } = this.#parts;
    const { signal } = this.#stopping;
    while (!signal.aborted) {
      try {
        await this.pass();
      } catch (error) {
        telemetry.log.error({ err: error }, 'failed to link audit records; retrying');
      }
      await this.#alarm.wait(config.auditPollMs);
      // Records committed together are linked together, in the same commit as the events of the timeline.
      if (!signal.aborted) await nextFlush(config.auditBatchWindowMs);
    }
    await this.#release();
  }

  async #sign(): Promise<void> {
    const { store, signer, clock, config } = this.#parts;
    const before = new Date(clock.now().getTime() - config.auditCheckpointMs);
    const rhythm = { records: config.auditCheckpointRecords, before };
    for (const chain of await chainsToSign(store.db, rhythm)) {
      if (this.#stopping.signal.aborted) return;
      // Linked records never change, so signing does not need the transaction.
      const signed = await signChain(signer, chain, false);
      await this.#asHolder((trx, now) => saveCheckpoint(trx, chain, signed, now));
    }
  }

  /** Runs `work` while holding the lease; returns undefined when another replica holds it. */
  async #asHolder<T>(
    work: (trx: SupervisorTransaction, now: Date) => Promise<T>,
  ): Promise<T | undefined> {
    const { store, clock } = this.#parts;
    return await store.transaction(
      async (trx) => {
        const now = clock.now();
        return (await holdLease(trx, this.#lease, now)) ? await work(trx, now) : undefined;
      },
      { background: true },
    );
  }

  async #release(): Promise<void> {
    const { store, telemetry } = this.#parts;
    try {
      await store.transaction((trx) => releaseLease(trx, this.#lease), { background: true });
    } catch (error) {
      telemetry.log.warn({ err: error }, 'failed to release the audit chainer lease; it expires');
    }
  }

  get #lease() {
    const { replica, auditLeaseMs } = this.#parts.config;
    return { name: 'audit-chainer', holder: replica, ttlMs: auditLeaseMs };
  }
}

/** Signs the linked part of a chain: a checkpoint, or the head that ends an export. */
export async function signChain(
  signer: Signer,
  { tenant, sequence, hash, signed_count }: ChainEnd,
  closesExport: boolean,
): Promise<string> {
  const { token } = await mintCheckpoint(signer, {
    tenant,
    count: BigInt(sequence),
    headHash: hash,
    previousCount: BigInt(signed_count),
    closesExport,
  });
  return token;
}
