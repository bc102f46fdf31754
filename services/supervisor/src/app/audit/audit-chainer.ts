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

/** Records linked in one transaction: few, since a review that comes meanwhile waits for it. */
const BATCH = 32;

/** What the chainer works with. */
export interface ChainerParts {
  readonly store: SupervisorStore;
  readonly signer: Signer;
  readonly clock: Clock;
  readonly telemetry: Pick<Telemetry, 'log'>;
  readonly config: Pick<
    SupervisorConfig,
    | 'replica'
    | 'auditLingerMs'
    | 'auditPollMs'
    | 'auditLeaseMs'
    | 'auditCheckpointRecords'
    | 'auditCheckpointMs'
  >;
}

/**
 * Links audit records into the chains of their tenants, apart from the transactions that wrote them,
 * and signs checkpoints (SV-8). Of all replicas one does it at a time, by a lease that is held in the
 * very transaction that links. Commits wake it, and it looks by itself now and then.
 */
export class AuditChainer {
  readonly #parts: ChainerParts;
  readonly #stopping = new AbortController();
  readonly #alarm = new ChangeAlarm(this.#stopping.signal);
  // Whoever rings may be inside of a transaction, which the loop must not inherit.
  readonly #outside = AsyncLocalStorage.snapshot();
  #unsubscribe: (() => void) | undefined;
  #loop: Promise<void> | undefined;

  constructor(parts: ChainerParts) {
    this.#parts = parts;
  }

  /** Begins with what a former process left behind. */
  start(): void {
    this.#unsubscribe = this.#parts.store.changes.subscribe('audit', () => this.#alarm.ring());
    this.#loop = this.#outside(() => this.#run());
  }

  /** Begins no further batch and gives the lease back. */
  async stop(): Promise<void> {
    this.#unsubscribe?.();
    this.#stopping.abort();
    await this.#loop;
    this.#alarm.close();
  }

  /** Links everything that is there and signs what is due, if this replica may. */
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
        telemetry.log.error({ err: error }, 'Audit records cannot be linked; trying again.');
      }
      await this.#alarm.wait(config.auditPollMs);
      // Those that commit together are linked together, and share the commit of the timeline's events.
      if (!signal.aborted) await nextFlush(config.auditLingerMs);
    }
    await this.#release();
  }

  async #sign(): Promise<void> {
    const { store, signer, clock, config } = this.#parts;
    const before = new Date(clock.now().getTime() - config.auditCheckpointMs);
    const rhythm = { records: config.auditCheckpointRecords, before };
    for (const chain of await chainsToSign(store.db, rhythm)) {
      if (this.#stopping.signal.aborted) return;
      // What is linked never changes, so it may be signed outside of the transaction.
      const signed = await signChain(signer, chain, false);
      await this.#asHolder((trx, now) => saveCheckpoint(trx, chain, signed, now));
    }
  }

  /** Does something as the only one; undefined when another replica is. */
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
      telemetry.log.warn({ err: error }, "The audit chainer's lease has to lapse by itself.");
    }
  }

  get #lease() {
    const { replica, auditLeaseMs } = this.#parts.config;
    return { name: 'audit-chainer', holder: replica, ttlMs: auditLeaseMs };
  }
}

/** Signs a chain as far as it is linked: a checkpoint on the way, or the head that ends an export. */
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
