import { SERVICE_NAMES } from '@writ/identity';
import { InvalidRequestError, systemClock } from '@writ/kernel';
import {
  type InspectedStore,
  inspectStores,
  orderRecovery,
  readStoreLocation,
  type StoreFinding,
} from '@writ/service';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import type { FormatOptions } from '../../output/format.ts';
import { showData } from '../../output/show.ts';

/** Options of `writ recover`. */
export interface RecoverOptions extends FormatOptions {
  readonly data?: string;
  readonly service?: readonly string[];
  readonly halt?: string;
  readonly yes?: boolean;
}

const FOUND: Readonly<Record<StoreFinding, string>> = {
  current: 'is current',
  behind: 'is an older copy',
  replaced: 'is a different database',
  missing: 'is missing',
  empty: 'is empty',
  unreadable: 'is corrupt: move it and its -wal file away before you start the service',
  unread: 'is checked when the service starts',
};

/**
 * Compares each database that has a marker with the marker, and reports the result. With `yes`, orders the services to
 * continue with the existing data at their next start, to halt everything and to end all unfinished runs (BD-4).
 * @throws InvalidRequestError INVALID_OPTION, also for a given service without a marker; the errors of
 *   {@link inspectStores} and {@link orderRecovery}
 */
export async function recoverStores(
  { data, service = [], halt, yes, ...options }: RecoverOptions,
  io: CliIo,
): Promise<Exit> {
  const unknown = service.find((name) => !SERVICE_NAMES.some((known) => known === name));
  if (unknown !== undefined) {
    throw new InvalidRequestError(
      'INVALID_OPTION',
      `--service must be one of ${SERVICE_NAMES.join(', ')}, not ${unknown}.`,
      { option: '--service' },
    );
  }
  const dataDir = data ?? (io.env.WRIT_DATA || '.writ');
  const inspected = inspectStores(io.env, dataDir);
  const unmarked = SERVICE_NAMES.find(
    (name) => service.includes(name) && !inspected.some((store) => store.service === name),
  );
  if (unmarked !== undefined) {
    const { marker } = readStoreLocation(io.env, unmarked, dataDir);
    throw new InvalidRequestError(
      'INVALID_OPTION',
      `--service ${unmarked}: the marker ${marker.file} does not exist; set --data or WRIT_STORE_MARKER_DIR to the folder of the service.`,
      { option: '--service' },
    );
  }
  const toRecover = inspected.filter(
    (store) =>
      service.includes(store.service) ||
      (store.finding !== 'current' && store.finding !== 'unread'),
  );
  const report = (next: string, haltId?: string): void =>
    showData(io, options, { stores: inspected.map(storeOf), haltId, next }, () => [
      ...inspected.map(lineOf),
      next,
    ]);
  if (toRecover.length === 0) {
    report(`Nothing to recover in ${dataDir}.`);
    return EXIT.success;
  }
  const names = toRecover.map((store) => store.service).join(', ');
  if (yes !== true) {
    report(
      `To continue with the existing data of ${names}, stop the platform and run this command with --yes. At the next start, everything is halted and unfinished runs end.`,
    );
    return EXIT.failure;
  }
  const haltId = await orderRecovery(toRecover, inspected, {
    dataDir,
    clock: systemClock,
    haltId: halt,
  });
  report(
    `The recovery of ${names} is ordered. At the next start, everything is halted and unfinished runs end. Compare external systems with the audit record, then run: writ halts lift ${haltId}`,
    haltId,
  );
  return EXIT.success;
}

function storeOf({ service, finding, mark, seen }: InspectedStore) {
  return { service, store: seen.store, finding, mark, seenMark: seen.mark, seenAt: seen.seenAt };
}

function lineOf({ service, finding, mark, seen }: InspectedStore): string {
  const found = finding === 'behind' ? ` with mark ${mark}` : '';
  return `${service}: ${seen.store} ${FOUND[finding]}${found}; the service last recorded mark ${seen.mark} at ${seen.seenAt}.`;
}
