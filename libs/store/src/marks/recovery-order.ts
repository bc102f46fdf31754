import { basename, dirname, join } from 'node:path';
import { InvalidRequestError, isJsonObject, type JsonValue } from '@writ/kernel';
import { readJsonFile, replaceJsonFile } from './json-file.ts';

/** An operator's order to continue with a store that went back in time. */
export interface RecoveryOrder {
  /** Id of the halt of everything, which is in force until the operator lifts it. */
  readonly haltId: string;
  /** When `writ recover` wrote it. */
  readonly orderedAt: string;
}

/**
 * Reads the latest order for the store of a marker, which may have been carried out; undefined if there is none.
 * @throws InvalidRequestError INVALID_FILE
 */
export function readRecoveryOrder(marker: string): RecoveryOrder | undefined {
  return readJsonFile(orderFile(marker), recoveryOrderFrom, unreadable);
}

/**
 * Writes an order for the store of a marker; replaces an earlier order, even if it was not carried out. An order of
 * root belongs to the owner of the marker.
 */
export async function writeRecoveryOrder(marker: string, order: RecoveryOrder): Promise<void> {
  await replaceJsonFile(orderFile(marker), order, marker);
}

/** Returns whether `order` is one of `orders`. An operator can order two recoveries with the same halt. */
export function includesOrder(orders: readonly RecoveryOrder[], order: RecoveryOrder): boolean {
  const { haltId, orderedAt } = order;
  return orders.some((other) => other.haltId === haltId && other.orderedAt === orderedAt);
}

/**
 * The order is in a file of its own, because a running service replaces its marker at any time. The service does not
 * remove an order that it has carried out: it could remove a later order, which replaces the file at any time. The
 * marker lists the orders that were carried out. The name ends like that of the marker, so that a backup without markers
 * contains no orders.
 */
function orderFile(marker: string): string {
  return join(dirname(marker), `recovery.${basename(marker)}`);
}

/** Parses an order; undefined if it is invalid. */
export function recoveryOrderFrom(value: JsonValue | undefined): RecoveryOrder | undefined {
  if (!isJsonObject(value)) return undefined;
  const { haltId, orderedAt } = value;
  if (typeof haltId !== 'string' || typeof orderedAt !== 'string') return undefined;
  return { haltId, orderedAt };
}

function unreadable(file: string, cause?: unknown): InvalidRequestError {
  return new InvalidRequestError(
    'INVALID_FILE',
    `The recovery order ${file} cannot be read; remove it, and run \`writ recover\` again.`,
    { file },
    { cause },
  );
}
