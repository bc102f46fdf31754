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
  /** Whether the clock is known to be right: readers reject a checkpoint that was issued in the future (BD-3). */
  readonly isClockConfirmed: () => boolean;
  readonly config: Pick<SupervisorConfig, 'auditCheckpointRecords' | 'auditCheckpointMs'>;
}

/** The audit chainer, on whose behalf checkpoints are signed. */
interface SigningChainer {
  /** Runs `work` while holding its lease; returns undefined when another replica holds it. */
  readonly asHolder: <T>(
    work: (trx: SupervisorTransaction, now: Date) => Promise<T>,
  ) => Promise<T | undefined>;
  readonly isStopped: () => boolean;
  readonly appender: Pick<CheckpointAppender, 'append'> | undefined;
}

/**
 * Signs a checkpoint of every chain that is due: with enough records since its last one, or with any when that one is
 * old enough (SV-8).
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

/** Signs, saves and publishes a checkpoint; returns whether this replica did. */
async function signCheckpoint(
  { signer, events, chainGuard, isClockConfirmed }: SigningParts,
  chain: ChainRow,
  { asHolder }: SigningChainer,
): Promise<boolean> {
  const { tenant, sequence: count, hash } = chain;
  // Linked records never change, so signing does not need the transaction.
  const signed = await signChain(signer, chain, false);
  // After signing, so that the clock was right when it gave the checkpoint its time.
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
