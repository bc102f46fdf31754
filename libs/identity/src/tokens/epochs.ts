import { PreconditionError } from '@writ/kernel';

/**
 * Applies the fencing rule (RT-2): admits an epoch that is not below the highest one seen.
 * @returns the new highest epoch; store it in the transaction that acts on it
 * @throws PreconditionError STALE_EPOCH when a higher epoch has been seen
 */
export function admitEpoch(seen: bigint | undefined, epoch: bigint): bigint {
  if (seen === undefined || epoch >= seen) return epoch;
  throw new PreconditionError(
    'STALE_EPOCH',
    `Epoch ${epoch} is stale: epoch ${seen} was seen, so another worker holds the lease.`,
    { epoch: String(epoch), seen: String(seen) },
  );
}
