import { mintCheckpoint, type Signer } from '@writ/identity';
import type { Clock } from '@writ/kernel';
import type { SupervisorConfig } from '../../config.ts';
import { latestRecorded } from '../../domain/clock/wrong-clock.ts';
import type { SupervisorEvents } from '../../events.ts';
import {
  type ChainEnd,
  type ChainRow,
  chainsToSign,
  saveCheckpoint,
} from '../../store/audit/checkpoints.ts';
import type { SupervisorStore, SupervisorTransaction } from '../../store/supervisor-store.ts';
import type { ChainGuard } from './chain-guard.ts';
import type { CheckpointAppender } from './checkpoint-appender.ts';

/** Dependencies of {@link signCheckpoints}. */
export interface SigningParts {
  readonly store: Pick<SupervisorStore, 'db'>;
  readonly signer: Signer;
  readonly clock: Clock;
  readonly events: Pick<SupervisorEvents, 'auditCheckpoint'>;
  readonly chainGuard: ChainGuard;
  /**
   * Whether the clock is known to be correct. Required for signing, because readers reject a checkpoint that was issued
   * in the future (BD-3).
   */
  readonly isClockConfirmed: () => boolean;
  readonly config: Pick<SupervisorConfig, 'auditCheckpointRecords' | 'auditCheckpointMs'>;
}

/** The parts of the audit chainer that are used to sign checkpoints. */
interface SigningChainer {
  /**
   * Runs `work` while this replica holds the lease of the chainer; returns undefined when another replica holds the
   * lease.
   */
  readonly asHolder: <T>(
    work: (trx: SupervisorTransaction, now: Date) => Promise<T>,
  ) => Promise<T | undefined>;
  readonly isStopped: () => boolean;
  readonly appender: Pick<CheckpointAppender, 'append'> | undefined;
}

/**
 * Signs a checkpoint of every chain that is due: a chain with at least `auditCheckpointRecords` records since its last
 * checkpoint, or with any new record if the last checkpoint is at least `auditCheckpointMs` old or has a time in the
 * future (SV-8, BD-3).
 */
export async function signCheckpoints(parts: SigningParts, chainer: SigningChainer): Promise<void> {
  const { store, clock, config, chainGuard } = parts;
  const now = clock.now();
  const before = new Date(now.getTime() - config.auditCheckpointMs);
  const latest = latestRecorded(now);
  const due = { records: config.auditCheckpointRecords, before, latest };
  const marks = chainGuard.marks();
  for (const chain of await chainsToSign(store.db, due)) {
    if (chainer.isStopped()) return;
    await chainGuard.check(chain, marks.get(chain.tenant));
    if (chainGuard.isRolledBack(chain.tenant)) continue;
    if (!(await signCheckpoint(parts, chain, chainer))) continue;
    await chainer.appender?.append(chain.tenant);
  }
}

/** Signs, saves and publishes a checkpoint; returns whether this replica saved it. */
async function signCheckpoint(
  { signer, events, chainGuard, isClockConfirmed }: SigningParts,
  chain: ChainRow,
  { asHolder }: SigningChainer,
): Promise<boolean> {
  const { tenant, sequence: count, hash } = chain;
  // Linked records never change, so signing does not need the transaction.
  const signed = await signChain(signer, chain, false);
  // Checked after signing, so that the time in the checkpoint is known to be correct.
  if (!isClockConfirmed()) return false;
  const checkpoints = chain.checkpoints + 1;
  const isSaved = await asHolder(async (trx, now) => {
    if (!(await saveCheckpoint(trx, chain, signed, now))) return false;
    await events.auditCheckpoint(trx, { tenant, number: checkpoints, count, signed }, now);
    return true;
  });
  if (isSaved === true) chainGuard.remember({ tenant, count, hash, checkpoints });
  return isSaved === true;
}

/** Signs the linked part of a chain: a checkpoint, or the head that ends an export. */
export async function signChain(
  signer: Signer,
  { tenant, sequence, hash, signed_count, checkpoints }: ChainEnd,
  closesExport: boolean,
): Promise<string> {
  const { token } = await mintCheckpoint(signer, {
    tenant,
    count: BigInt(sequence),
    headHash: hash,
    previousCount: BigInt(signed_count),
    closesExport,
    checkpointNumber: BigInt(closesExport ? checkpoints : checkpoints + 1),
  });
  return token;
}
