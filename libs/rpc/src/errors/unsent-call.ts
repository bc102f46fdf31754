import { Metadata } from '@grpc/grpc-js';
import { UnavailableError } from '@writ/kernel';

/**
 * UNAVAILABLE for a call that this client never gave to a connection, so that no server can have run it. Any other
 * error, and any error after an attempt that may have been sent, leaves that open. The class exists in this process
 * only: it is not part of a status, so no server can send it, and a server that passes the error on sends UNAVAILABLE.
 */
export class UnsentCallError extends UnavailableError {}

/** The metadata of statuses that this client created before it sent anything. */
const UNSENT = new WeakSet<Metadata>();

/**
 * Metadata for the status of a call that is not sent. It is recognized by its identity, because everything else in a
 * status, including its text, can be sent by a server.
 */
export function unsentMetadata(): Metadata {
  const metadata = new Metadata();
  UNSENT.add(metadata);
  return metadata;
}

/** Whether `metadata` was created by {@link unsentMetadata}. */
export function isUnsent(metadata: Metadata | undefined): boolean {
  return metadata !== undefined && UNSENT.has(metadata);
}
