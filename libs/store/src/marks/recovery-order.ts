import { rmSync } from 'node:fs';
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
 * Reads the order for the store of a marker; undefined if there is none.
 * @throws InvalidRequestError INVALID_FILE
 */
export function readRecoveryOrder(marker: string): RecoveryOrder | undefined {
  return readJsonFile(orderFile(marker), orderFrom, unreadable);
}

/**
 * Writes an order for the store of a marker; replaces an order that has not been carried out yet. An order of root
 * belongs to the owner of the marker.
 */
export async function writeRecoveryOrder(marker: string, order: RecoveryOrder): Promise<void> {
  await replaceJsonFile(orderFile(marker), order, marker);
}

/** Removes an order that was carried out, unless a later order has replaced it. */
export function removeRecoveryOrder(marker: string, { haltId, orderedAt }: RecoveryOrder): void {
  const current = readRecoveryOrder(marker);
  if (current?.haltId !== haltId || current.orderedAt !== orderedAt) return;
  rmSync(orderFile(marker), { force: true });
}

/**
 * The order is in a file of its own, because a running service replaces its marker at any time. The name ends like that
 * of the marker, so that a backup without markers contains no orders.
 */
function orderFile(marker: string): string {
  return join(dirname(marker), `recovery.${basename(marker)}`);
}

function orderFrom(value: JsonValue | undefined): RecoveryOrder | undefined {
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
