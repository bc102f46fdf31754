import type { ValidExport } from './verification.ts';

/**
 * Returns one sentence about a valid export; `after` is the number of the record that precedes the first record of the
 * export.
 */
export function summaryOf({ tenant, records, checkpoints, head }: ValidExport, after = 0): string {
  const which = records === 0 ? 'no records' : `${records} records, ${after + 1} to ${head.count}`;
  const when = head.signedAt.toISOString();
  return `The chain of tenant ${tenant} is valid: ${which}, ${checkpoints} checkpoints, head signed at ${when}.`;
}
