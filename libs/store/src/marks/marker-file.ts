import { InvalidRequestError, isJsonObject, type JsonValue } from '@writ/kernel';
import { readJsonFile, replaceJsonFile } from './json-file.ts';
import {
  includesOrder,
  type RecoveryOrder,
  readRecoveryOrder,
  recoveryOrderFrom,
} from './recovery-order.ts';
import type { StoreMark } from './store-mark.ts';

/** The latest mark of a database that its service recorded. */
export interface StoreMarker extends StoreMark {
  readonly service: string;
  /** Name of the database in error messages. */
  readonly store: string;
  /** When the mark was recorded. */
  readonly seenAt: string;
  /**
   * The recovery orders that were carried out; undefined if there are none. The file of an order remains, and a copy of
   * the folder can contain an earlier one.
   */
  readonly recovered?: readonly RecoveryOrder[];
}

/**
 * Reads a marker; undefined if there is none.
 * @throws InvalidRequestError INVALID_FILE, also if the marker contains a recovery order of an earlier version
 */
export function readMarker(file: string): StoreMarker | undefined {
  const found = readMarkerOfAnyVersion(file);
  if (found?.hasOrder === true) throw ordered(file);
  return found?.marker;
}

/**
 * Reads a marker; undefined if there is none.
 * @returns `hasOrder` is true if it contains a recovery order, which earlier versions of `writ recover` wrote into it
 * @throws InvalidRequestError INVALID_FILE
 */
export function readMarkerOfAnyVersion(
  file: string,
): { readonly marker: StoreMarker; readonly hasOrder: boolean } | undefined {
  const parse = (value: JsonValue | undefined) => {
    const marker = markerFrom(value);
    return marker && { marker, hasOrder: isJsonObject(value) && value.recovery !== undefined };
  };
  return readJsonFile(file, parse, unreadable);
}

/**
 * Reads a marker, and the recovery order for its store unless the order was carried out.
 * @throws InvalidRequestError INVALID_FILE
 */
export function readMarkerAndOrder(file: string): {
  readonly seen: StoreMarker | undefined;
  readonly order: RecoveryOrder | undefined;
} {
  // Read before the marker: a replica that carries out the order then writes the marker.
  const order = readRecoveryOrder(file);
  const seen = readMarker(file);
  const isPending = order !== undefined && !includesOrder(seen?.recovered ?? [], order);
  return { seen, order: isPending ? order : undefined };
}

/** Replaces a marker atomically. The marker keeps its owner if root replaces it. */
export async function writeMarker(file: string, marker: StoreMarker): Promise<void> {
  // The rename is not synced: if a power failure reverts it, the marker is older than the store, never newer.
  await replaceJsonFile(file, marker);
}

function markerFrom(value: JsonValue | undefined): StoreMarker | undefined {
  if (!isJsonObject(value)) return undefined;
  const { service, store, generation, mark, seenAt, recovered } = value;
  if (typeof service !== 'string' || typeof store !== 'string') return undefined;
  if (typeof generation !== 'string' || typeof seenAt !== 'string') return undefined;
  if (typeof mark !== 'number' || !Number.isSafeInteger(mark)) return undefined;
  const seen = { service, store, generation, mark, seenAt };
  if (recovered === undefined) return seen;
  if (!Array.isArray(recovered)) return undefined;
  const orders = recovered.map(recoveryOrderFrom).filter((order) => order !== undefined);
  return orders.length === recovered.length ? { ...seen, recovered: orders } : undefined;
}

function unreadable(file: string, cause?: unknown): InvalidRequestError {
  return new InvalidRequestError(
    'INVALID_FILE',
    `The store marker ${file} cannot be read; restore it, or remove it if the database is known to be the latest one.`,
    { file },
    { cause },
  );
}

function ordered(file: string): InvalidRequestError {
  return new InvalidRequestError(
    'INVALID_FILE',
    `The store marker ${file} contains a recovery order of an earlier version; run \`writ recover\` again.`,
    { file },
  );
}
