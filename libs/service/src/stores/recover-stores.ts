import { statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { SERVICE_NAMES, type ServiceName } from '@writ/identity';
import { type Clock, InvalidRequestError, isWritError, newId } from '@writ/kernel';
import {
  isBehind,
  type MarkerLocation,
  readMarker,
  type StoreMark,
  type StoreMarker,
  translateSqliteError,
  writeMarker,
} from '@writ/store';
import { lockDataFolder } from '../data-folder.ts';
import { readStoreLocation } from '../settings/store-location.ts';
import { isPostgresLabel } from './store-label.ts';

/**
 * Result of comparing a database with the marker of its service: the latest state, an older copy, another database,
 * missing, empty, corrupt, or not read (PostgreSQL, which only the service reads).
 */
export type StoreFinding =
  | 'current'
  | 'behind'
  | 'replaced'
  | 'missing'
  | 'empty'
  | 'unreadable'
  | 'unread';

/** The database of a service that has a marker, and the result of comparing the database with the marker. */
export interface InspectedStore {
  readonly service: ServiceName;
  readonly finding: StoreFinding;
  /** The mark in the database; undefined if the database is missing, empty, corrupt or not read. */
  readonly mark: number | undefined;
  /** The last mark that the service recorded. */
  readonly seen: StoreMarker;
  readonly marker: MarkerLocation;
}

/** Longest wait for another process that recovers the write-ahead log of a database, ms. */
const BUSY_MS = 5_000;
/** Services that receive every recovery order, even if their own database is not recovered. */
const HALTED: readonly ServiceName[] = ['supervisor', 'execution-meter', 'tool-gateway'];

/**
 * Compares the databases of the services with their markers (BD-4). A service without a marker is omitted; a PostgreSQL
 * database is not read. The marker shows that a database is in PostgreSQL even if `env` lacks its URL, as in the shell
 * of an operator.
 * @throws ConfigError; InvalidRequestError INVALID_FILE naming a marker; UnavailableError STORE_BUSY, STORE_DISK_FAILED
 */
export function inspectStores(env: NodeJS.ProcessEnv, dataDir: string): InspectedStore[] {
  return SERVICE_NAMES.flatMap((service) => {
    const location = readStoreLocation(env, service, dataDir);
    const seen = readMarker(location.marker.file);
    if (seen === undefined) return [];
    const isFile = location.dialect === 'sqlite' && !isPostgresLabel(seen.store);
    const found = isFile ? inspectFile(location.file) : 'unread';
    const mark = typeof found === 'string' ? undefined : found.mark;
    return [{ service, finding: findingOf(found, seen), mark, seen, marker: location.marker }];
  });
}

/**
 * Writes a recovery order for the services of the given databases, and for the supervisor, the execution meter and the
 * tool gateway, so that they continue with the existing databases. At their next start they halt everything and end all
 * unfinished runs. A later call replaces an order that has not been carried out yet.
 * @param stores the databases to recover, from {@link inspectStores}
 * @param inspected all databases of the folder, from {@link inspectStores}
 * @returns the id of the halt
 * @throws PreconditionError DATA_FOLDER_LOCKED: a service with a SQLite file is running; InvalidRequestError
 *   HALT_REQUIRED
 */
export async function orderRecovery(
  stores: readonly InspectedStore[],
  inspected: readonly InspectedStore[],
  { dataDir, clock, haltId: given }: RecoveryParts,
): Promise<string> {
  if (given === undefined && !inspected.some(({ service }) => service === 'supervisor')) {
    throw new InvalidRequestError(
      'HALT_REQUIRED',
      'The supervisor is not in this data folder: halt everything with `writ halts create --everything --end-runs`, and pass the id of the halt with --halt.',
    );
  }
  const concerned = inspected.filter(
    (store) => stores.includes(store) || HALTED.includes(store.service),
  );
  // A service with a PostgreSQL database does not lock the folder, which can be read-only.
  const files = concerned.filter(({ finding }) => finding !== 'unread');
  const lock =
    files.length === 0
      ? undefined
      : await lockDataFolder(
          dataDir,
          files.map(({ service }) => service),
        );
  try {
    const haltId = given ?? newId('hlt');
    const recovery = { haltId, orderedAt: clock.now().toISOString() };
    for (const { marker, seen } of concerned) await writeMarker(marker.file, { ...seen, recovery });
    return haltId;
  } finally {
    lock?.release();
  }
}

/** Dependencies of {@link orderRecovery}. */
export interface RecoveryParts {
  readonly dataDir: string;
  readonly clock: Clock;
  /**
   * Id of the halt that was created with `writ halts create --everything --end-runs`; required if the supervisor does
   * not use this folder.
   */
  readonly haltId: string | undefined;
}

function findingOf(found: StoreMark | StoreFinding, seen: StoreMark): StoreFinding {
  if (typeof found === 'string') return found;
  if (!isBehind(found, seen)) return 'current';
  return found.generation === seen.generation ? 'behind' : 'replaced';
}

function inspectFile(file: string): StoreMark | StoreFinding {
  const size = statSync(file, { throwIfNoEntry: false })?.size;
  if (size === undefined) return 'missing';
  if (size === 0) return 'empty';
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(file, { readOnly: true, timeout: BUSY_MS });
    const row = database.prepare('select generation, mark from store_mark').get();
    return row === undefined
      ? 'empty'
      : { generation: String(row.generation), mark: Number(row.mark) };
  } catch (error) {
    if (String(error).includes('no such table')) return 'empty';
    const translated = translateSqliteError(error, file);
    if (isWritError(translated) && translated.reason === 'STORE_CORRUPT') return 'unreadable';
    throw translated;
  } finally {
    database?.close();
  }
}
