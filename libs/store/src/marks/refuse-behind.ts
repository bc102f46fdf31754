import { statSync } from 'node:fs';
import { PreconditionError } from '@writ/kernel';
import type { MigrationGuard } from '../schema/migrations.ts';
import type { StoreMarker } from './marker-file.ts';
import { ensureMark, type StoreMark } from './store-mark.ts';

const CURE = 'restore the latest copy, or run `writ recover` to continue with what is left';

/**
 * Rejects a SQLite file that is missing or empty although the service had data, before SQLite would create it again
 * (BD-4).
 * @throws PreconditionError STORE_EMPTIED
 */
export function refuseLostFile(file: string, marker: StoreMarker | undefined): void {
  if (marker === undefined || marker.recovery !== undefined) return;
  const size = statSync(file, { throwIfNoEntry: false })?.size;
  if (size === undefined || size === 0)
    throw emptied(file, marker, size === 0 ? 'empty' : 'missing');
}

/**
 * Returns a guard that rejects a database that is empty although the service had data (PreconditionError
 * STORE_EMPTIED), older than the recorded mark, or a different database (PreconditionError STORE_BEHIND) (BD-4).
 * The guard also creates the mark of a database that has none.
 */
export function markGuard(label: string, marker: StoreMarker | undefined): MigrationGuard {
  const seen = marker?.recovery === undefined ? marker : undefined;
  return {
    refuseEmpty() {
      if (seen !== undefined) throw emptied(label, seen, 'empty');
    },
    async check(trx) {
      const found = await ensureMark(trx);
      if (seen !== undefined && isBehind(found, seen)) throw behind(label, found, seen);
    },
  };
}

function behind(label: string, found: StoreMark, seen: StoreMarker): PreconditionError {
  const what =
    found.generation === seen.generation
      ? `went back in time: it is at mark ${found.mark}, but was at mark ${seen.mark} at ${seen.seenAt}`
      : `is not the one that ${seen.service} used at ${seen.seenAt}`;
  return new PreconditionError('STORE_BEHIND', `${label} ${what}; ${CURE}.`, {
    service: seen.service,
    mark: String(found.mark),
    seen: String(seen.mark),
  });
}

/** Whether a store is older than its recorded mark, or is a different store. */
export function isBehind(found: StoreMark, seen: StoreMark): boolean {
  return found.generation !== seen.generation || found.mark < seen.mark;
}

function emptied(
  label: string,
  { service, seenAt, mark }: StoreMarker,
  what: string,
): PreconditionError {
  return new PreconditionError(
    'STORE_EMPTIED',
    `${label}, the database of ${service}, is ${what}, but had data at ${seenAt}; ${CURE}.`,
    { service, seen: String(mark) },
  );
}
