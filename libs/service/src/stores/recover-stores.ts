import { statSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { SERVICE_NAMES, type ServiceName } from '@writ/identity';
import { type Clock, InvalidRequestError, newId } from '@writ/kernel';
import {
  isBehind,
  type MarkerLocation,
  readMarker,
  type StoreMark,
  type StoreMarker,
  writeMarker,
} from '@writ/store';
import { lockDataFolder } from '../data-folder.ts';
import { readStoreLocation } from '../settings/store-location.ts';

/**
 * What is left of a database: all, an older copy, another database, nothing, a file that SQLite cannot read, or a
 * PostgreSQL database, which only the service reads.
 */
export type StoreFinding =
  | 'current'
  | 'behind'
  | 'replaced'
  | 'missing'
  | 'empty'
  | 'unreadable'
  | 'unread';

/** A database of a data folder, and what was seen of it. */
export interface KeptStore {
  readonly service: ServiceName;
  readonly finding: StoreFinding;
  /** The mark of what is left. */
  readonly mark: number | undefined;
  readonly seen: StoreMarker;
  readonly marker: MarkerLocation;
}

/** Services that a recovery halts, whichever database went back. */
const HALTED: readonly ServiceName[] = ['supervisor', 'execution-meter', 'tool-gateway'];

/**
 * Compares the databases of a data folder with what their services have seen of them (BD-4).
 * @throws ConfigError; InvalidRequestError INVALID_FILE naming a marker
 */
export function inspectStores(env: NodeJS.ProcessEnv, dataDir: string): KeptStore[] {
  return SERVICE_NAMES.flatMap((service) => {
    const location = readStoreLocation(env, service, dataDir);
    const seen = readMarker(location.marker.file);
    if (seen === undefined) return [];
    const found = location.dialect === 'sqlite' ? inspectFile(location.file) : 'unread';
    const mark = typeof found === 'string' ? undefined : found.mark;
    return [{ service, finding: findingOf(found, seen), mark, seen, marker: location.marker }];
  });
}

/**
 * Orders the services of a data folder to continue with the databases that are left: at their next start everything
 * is halted, and the runs that had not ended are ended. A later call replaces an order that was not carried out yet.
 * @param stores the databases that went back, from {@link inspectStores}
 * @param kept all databases of the folder, from {@link inspectStores}
 * @returns the id of the halt
 * @throws PreconditionError DATA_FOLDER_LOCKED: a service with a SQLite file is running; InvalidRequestError
 *   HALT_REQUIRED
 */
export async function orderRecovery(
  stores: readonly KeptStore[],
  kept: readonly KeptStore[],
  { dataDir, clock, haltId: given }: RecoveryParts,
): Promise<string> {
  if (given === undefined && !kept.some(({ service }) => service === 'supervisor')) {
    throw new InvalidRequestError(
      'HALT_REQUIRED',
      'The supervisor is not in this data folder: halt everything with `writ halts create --everything --end-runs`, and pass the id of the halt with --halt.',
    );
  }
  const concerned = kept.filter(
    (store) => stores.includes(store) || HALTED.includes(store.service),
  );
  const lock = await lockDataFolder(
    dataDir,
    concerned.map(({ service }) => service),
  );
  try {
    const haltId = given ?? newId('hlt');
    const recovery = { haltId, orderedAt: clock.now().toISOString() };
    for (const { marker, seen } of concerned) await writeMarker(marker.file, { ...seen, recovery });
    return haltId;
  } finally {
    lock.release();
  }
}

/** What {@link orderRecovery} works with. */
export interface RecoveryParts {
  readonly dataDir: string;
  readonly clock: Clock;
  /** The halt of everything that the supervisor has in force, if the supervisor is not in this folder. */
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
    database = new DatabaseSync(file, { readOnly: true });
    const row = database.prepare('select generation, mark from store_mark').get();
    return row === undefined
      ? 'empty'
      : { generation: String(row.generation), mark: Number(row.mark) };
  } catch (error) {
    return String(error).includes('no such table') ? 'empty' : 'unreadable';
  } finally {
    database?.close();
  }
}
