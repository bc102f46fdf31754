import type { RunKey } from '@writ/kernel';
import type { TransactionOptions } from '@writ/store';
import type { MeterContext } from '../../context.ts';
import { sliceOf } from '../../store/level-ids.ts';
import type { MeterTransaction } from '../../store/meter-store.ts';
import { AllSlicesRequired, type SliceAccess } from '../../store/slices/slice-access.ts';

/** Options of a transaction that books to the levels of its run. */
interface BookingOptions extends Pick<TransactionOptions, 'background'> {
  /** Whether the transaction reads or writes rows of its tenant outside its run and slice; default: false. */
  readonly touchesTenant?: boolean;
}

/**
 * Runs a transaction that books to the levels of a run (EM-3, SYS-5). With several slices (PostgreSQL), the transaction
 * first waits only for transactions of its run and its slice. If the grants of the slice do not suffice, it is rolled
 * back and repeated with all slices, while no other transaction of the tenant is open; only this second attempt can be
 * refused by the cap of a shared level. With one slice (SQLite), or with `touchesTenant`, the first attempt already
 * waits for all transactions of the tenant.
 */
export async function bookingTransaction<T>(
  { store, slices, config }: Pick<MeterContext, 'store' | 'slices' | 'config'>,
  run: RunKey,
  work: (trx: MeterTransaction, access: SliceAccess) => Promise<T>,
  { touchesTenant = false, ...options }: BookingOptions = {},
): Promise<T> {
  const { tenant, runId } = run;
  const slice = sliceOf(run, slices);
  const workWith = (reach: SliceAccess['reach']) => (trx: MeterTransaction) =>
    work(trx, { slice, reach, percents: config.thresholds });
  if (slices === 1) return await store.transaction(workWith('only'), { ...options, tenant });
  if (!touchesTenant) {
    const resource = `slice ${slice} of ${tenant}`;
    try {
      return await store.transaction(workWith('own'), {
        ...options,
        run: { tenant, runId },
        resource,
      });
    } catch (error) {
      if (!(error instanceof AllSlicesRequired)) throw error;
    }
  }
  return await store.transaction(workWith('all'), { ...options, tenant });
}
