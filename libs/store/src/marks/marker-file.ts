import { readFileSync, renameSync } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import {
  createPrivateFolder,
  InvalidRequestError,
  isJsonObject,
  type JsonValue,
  keepOwner,
  newId,
} from '@writ/kernel';
import type { StoreMark } from './store-mark.ts';

/** An operator's order to continue with a store that went back in time. */
export interface RecoveryOrder {
  /** Id of the halt of everything, which is in force until the operator lifts it. */
  readonly haltId: string;
  /** When `writ recover` wrote the order. */
  readonly orderedAt: string;
}

/** The latest mark of a database that its service recorded. */
export interface StoreMarker extends StoreMark {
  readonly service: string;
  /** Name of the database in error messages. */
  readonly store: string;
  /** When the mark was recorded. */
  readonly seenAt: string;
  readonly recovery?: RecoveryOrder | undefined;
}

/**
 * Reads a marker; undefined if there is none.
 * @throws InvalidRequestError INVALID_FILE
 */
export function readMarker(file: string): StoreMarker | undefined {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as { readonly code?: unknown };
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    throw unreadable(file, error);
  }
  return markerFrom(parse(text)) ?? fail(file);
}

/**
 * Replaces a marker atomically; after a crash the file has either the old or the new content. The marker keeps its
 * owner if root replaces it.
 */
export async function writeMarker(file: string, marker: StoreMarker): Promise<void> {
  await replace(file, marker, () => true);
}

/**
 * Replaces a marker like {@link writeMarker}, but keeps its recovery order unless the order is `carriedOut`: another
 * process can write an order at any time.
 */
export async function updateMarker(
  file: string,
  marker: Omit<StoreMarker, 'recovery'>,
  carriedOut?: RecoveryOrder,
): Promise<void> {
  const pendingOrder = () => {
    const order = readMarker(file)?.recovery;
    return isDeepStrictEqual(order, carriedOut) ? undefined : order;
  };
  for (;;) {
    const recovery = pendingOrder();
    const isCurrent = () => isDeepStrictEqual(pendingOrder(), recovery);
    if (await replace(file, { ...marker, recovery }, isCurrent)) return;
  }
}

/** Replaces a marker if `isCurrent` returns true immediately before; returns whether it did. */
async function replace(
  file: string,
  marker: StoreMarker,
  isCurrent: () => boolean,
): Promise<boolean> {
  createPrivateFolder(dirname(file));
  // Replicas in containers may share the folder and have the same process id.
  const draft = `${file}.${newId('draft')}.tmp`;
  try {
    const handle = await open(draft, 'w', 0o600);
    try {
      keepOwner(handle.fd, file);
      await handle.writeFile(`${JSON.stringify(marker)}\n`);
      await handle.sync();
    } finally {
      await handle.close();
    }
    const replaces = isCurrent();
    // The rename is not synced: if a power failure reverts it, the marker is older than the store, never newer.
    if (replaces) renameSync(draft, file);
    else await rm(draft, { force: true });
    return replaces;
  } catch (error) {
    await rm(draft, { force: true }).catch(() => undefined);
    throw error;
  }
}

function markerFrom(value: JsonValue | undefined): StoreMarker | undefined {
  if (!isJsonObject(value)) return undefined;
  const { service, store, generation, mark, seenAt, recovery } = value;
  if (typeof service !== 'string' || typeof store !== 'string') return undefined;
  if (typeof generation !== 'string' || typeof seenAt !== 'string') return undefined;
  if (typeof mark !== 'number' || !Number.isSafeInteger(mark)) return undefined;
  const seen = { service, store, generation, mark, seenAt };
  if (recovery === undefined) return seen;
  if (!isJsonObject(recovery)) return undefined;
  const { haltId, orderedAt } = recovery;
  if (typeof haltId !== 'string' || typeof orderedAt !== 'string') return undefined;
  return { ...seen, recovery: { haltId, orderedAt } };
}

function parse(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text) as JsonValue;
  } catch {
    return undefined;
  }
}

function fail(file: string): never {
  throw unreadable(file);
}

function unreadable(file: string, cause?: unknown): InvalidRequestError {
  return new InvalidRequestError(
    'INVALID_FILE',
    `The store marker ${file} cannot be read; restore it, or remove it if the database is known to be the latest one.`,
    { file },
    { cause },
  );
}
