import { Metadata } from '@grpc/grpc-js';
import { UnavailableError } from '@writ/kernel';

/**
 * UNAVAILABLE for a call that this client never sent, so that no server can have executed it. After any other error, or
 * if an earlier attempt may have been sent, the server may have executed the call. The class is local to this process:
 * it is not part of a status, so a server cannot send it, and a server that rethrows the error sends UNAVAILABLE.
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
