import { SERVICE_NAMES } from '@writ/identity';
import { InvalidRequestError, systemClock } from '@writ/kernel';
import { inspectStores, type KeptStore, orderRecovery, type StoreFinding } from '@writ/service';
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
  unreadable: 'is corrupt: move it and its -wal file away before the start',
  unread: 'is checked when the service starts',
};

/**
 * Reports the state of every known database, such as current, an older copy, missing or corrupt; with `yes`, records
 * that the next start continues with the current data.
 * @throws InvalidRequestError INVALID_OPTION
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
  const kept = inspectStores(io.env, dataDir);
  const lost = kept.filter(
    (store) =>
      service.includes(store.service) ||
      (store.finding !== 'current' && store.finding !== 'unread'),
  );
  const report = (next: string, haltId?: string): void =>
    showData(io, options, { stores: kept.map(storeOf), haltId, next }, () => [
      ...kept.map(lineOf),
      next,
    ]);
  if (lost.length === 0) {
    report(`Nothing to recover in ${dataDir}.`);
    return EXIT.success;
  }
  const names = lost.map((store) => store.service).join(', ');
  if (yes !== true) {
    report(
      `To continue without the data that ${names} lost, stop the platform and run this with --yes: unfinished runs end, and everything is halted.`,
    );
    return EXIT.failure;
  }
  const haltId = await orderRecovery(lost, kept, { dataDir, clock: systemClock, haltId: halt });
  report(
    `The next start of ${names} continues with the current databases. Everything is halted, and unfinished runs end; compare external systems with the audit record, then run: writ halts lift ${haltId}`,
    haltId,
  );
  return EXIT.success;
}

function storeOf({ service, finding, mark, seen }: KeptStore) {
  return { service, store: seen.store, finding, mark, seenMark: seen.mark, seenAt: seen.seenAt };
}

function lineOf({ service, finding, mark, seen }: KeptStore): string {
  const at = finding === 'behind' ? `, at mark ${mark}` : '';
  return `${service}: ${seen.store} ${FOUND[finding]}${at}; seen at mark ${seen.mark} at ${seen.seenAt}.`;
}
