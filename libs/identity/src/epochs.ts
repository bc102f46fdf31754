import { PreconditionError } from '@writ/kernel';

/**
 * The rule of fencing (RT-2): an epoch equal to the highest seen, or above it, is admitted.
 * @returns the highest epoch seen from now on; write it in the transaction that acts on it
 * @throws PreconditionError STALE_EPOCH when a later worker has been seen
 */
export function admitEpoch(seen: bigint | undefined, epoch: bigint): bigint {
  if (seen === undefined || epoch >= seen) return epoch;
  throw new PreconditionError(
    'STALE_EPOCH',
    `Epoch ${epoch} is stale: epoch ${seen} was seen, so another worker holds the lease.`,
    { epoch: String(epoch), seen: String(seen) },
  );
}
