import type { LiveOptions } from '@writ/bus';
import { readCheckpoint, type Verifier } from '@writ/identity';
import { DataLossError } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import type { ChainEnd } from '../../store/audit/checkpoints.ts';
import { chainEnds, hashOf, readChainEnd } from '../../store/audit/read-chain.ts';
import type { SupervisorReader, SupervisorStore } from '../../store/supervisor-store.ts';
import { readHookEvent } from '../../wire/hook-event.ts';

/** A recorded state of a chain. A later state must contain the same records and may contain more. */
interface ChainMark {
  readonly tenant: string;
  readonly count: number;
  /** Hash of the last of these records. */
  readonly hash: string;
  /** Number of checkpoints. */
  readonly checkpoints: number;
}

/** Dependencies of a {@link ChainGuard}. */
interface GuardParts {
  readonly store: Pick<SupervisorStore, 'db'>;
  readonly verifier: Verifier;
  readonly log: Logger;
}

/**
 * Keeps the last known state of the chain of each tenant outside the database, and refuses to sign a chain that was
 * rolled back (SV-8): an attacker who can write to the database can remove the last records and checkpoints, but gets
 * no signature over the rest. The marks come from this process, from the checkpoints that other replicas publish, and
 * from the checkpoint file. Linking continues, so that no run waits; only the affected tenant gets no signature.
 */
export class ChainGuard {
  readonly #parts: GuardParts;
  readonly #marks = new Map<string, ChainMark>();
  readonly #rolledBack = new Map<string, DataLossError>();

  constructor(parts: GuardParts) {
    this.#parts = parts;
  }

  /** Records the chains as they are when the process starts. */
  async open(): Promise<void> {
    const { db } = this.#parts.store;
    const missing = this.marks();
    for (const end of await chainEnds(db)) {
      const { tenant, sequence: count, hash, checkpoints } = end;
      missing.delete(tenant);
      await this.check(end, this.mark(tenant));
      this.remember({ tenant, count, hash, checkpoints });
    }
    for (const [tenant, mark] of missing) await this.check(await readChainEnd(db, tenant), mark);
  }

  /** Records the committed state of a chain. */
  remember(mark: ChainMark): void {
    const known = this.#marks.get(mark.tenant);
    const longest = known === undefined || mark.count >= known.count ? mark : known;
    const checkpoints = Math.max(mark.checkpoints, known?.checkpoints ?? 0);
    this.#marks.set(mark.tenant, { ...longest, checkpoints });
  }

  /**
   * Records a signed checkpoint of another replica, or of the checkpoint file.
   * @throws UnauthenticatedError TOKEN_INVALID; UnavailableError KEYS_UNAVAILABLE
   */
  async rememberSigned(signed: string): Promise<void> {
    const { claims } = await readCheckpoint(this.#parts.verifier, signed);
    const { tenant, count, headHash: hash, checkpointNumber } = claims;
    this.remember({ tenant, count: Number(count), hash, checkpoints: Number(checkpointNumber) });
  }

  /** Handles the AUDIT_CHECKPOINT events of the bus. */
  readonly onEvent: LiveOptions['handler'] = async (message) => {
    const signed = readHookEvent(message)?.auditCheckpoint?.signed;
    if (signed === undefined) return;
    try {
      await this.rememberSigned(signed);
    } catch (error) {
      this.#parts.log.warn(
        { err: error, event_id: message.eventId },
        'failed to verify an audit checkpoint; ignoring it',
      );
    }
  };

  /**
   * The mark of a tenant. Get it before you read the chain, or read the chain while holding the chainer's lease, so
   * that the chain cannot be older than the mark.
   */
  mark(tenant: string): ChainMark | undefined {
    return this.#marks.get(tenant);
  }

  /** The marks of all tenants; see {@link mark}. */
  marks(): Map<string, ChainMark> {
    return new Map(this.#marks);
  }

  /** Whether the chain of a tenant was rolled back. */
  isRolledBack(tenant: string): boolean {
    return this.#rolledBack.has(tenant);
  }

  /**
   * Reads the end of a tenant's chain for a signature.
   * @throws DataLossError AUDIT_CHAIN_ROLLED_BACK
   */
  async readEnd(tenant: string): Promise<ChainEnd> {
    const mark = this.mark(tenant);
    const end = await readChainEnd(this.#parts.store.db, tenant);
    await this.check(end, mark);
    const problem = this.#rolledBack.get(tenant);
    if (problem !== undefined) throw problem;
    return end;
  }

  /**
   * Compares a chain with a mark that was taken before the chain was read. If the chain was rolled back, logs it and
   * rejects later signatures.
   */
  async check(
    end: ChainEnd,
    mark: ChainMark | undefined,
    db: SupervisorReader = this.#parts.store.db,
  ): Promise<void> {
    if (mark === undefined || this.#rolledBack.has(end.tenant)) return;
    const problem = await contradiction(end, mark, db);
    if (problem === undefined) return;
    const { tenant, sequence, checkpoints } = end;
    this.#parts.log.error(
      {
        tenant,
        records: sequence,
        checkpoints,
        seen: mark.count,
        seen_checkpoints: mark.checkpoints,
      },
      'audit chain was rolled back; signing no further checkpoint of the tenant',
    );
    this.#rolledBack.set(tenant, rolledBack(end, mark, problem));
  }
}

/**
 * Returns how a chain contradicts a mark, worded as the predicate of a sentence about the chain; undefined if the chain
 * was not rolled back.
 */
async function contradiction(
  { tenant, sequence, hash: endHash, checkpoints }: ChainEnd,
  mark: ChainMark,
  db: SupervisorReader,
): Promise<string | undefined> {
  const { count } = mark;
  const seen = `seen, with checkpoint ${mark.checkpoints}`;
  if (sequence < count) return `has ${sequence} records, but ${count} were ${seen}`;
  const hash = sequence === count ? endHash : await hashOf(db, tenant, count);
  if (hash !== mark.hash) return `differs from the chain of ${count} records that was ${seen}`;
  if (checkpoints >= mark.checkpoints) return undefined;
  return `lacks checkpoints: it has ${checkpoints}, but ${mark.checkpoints} were seen`;
}

function rolledBack(
  { tenant, sequence }: ChainEnd,
  { count, checkpoints }: ChainMark,
  what: string,
): DataLossError {
  return new DataLossError(
    'AUDIT_CHAIN_ROLLED_BACK',
    `The audit chain of tenant ${tenant} ${what}; it is not signed. Compare it with the published checkpoints, and restore the database.`,
    { tenant, records: String(sequence), seen: String(count), checkpoint: String(checkpoints) },
  );
}
