import { Metadata } from '@grpc/grpc-js';
import { InvalidRequestError } from '@writ/kernel';
import type { CallOptions } from './call-options.ts';
import { METADATA } from './caller.ts';

/** What a call carries besides its message: credentials, epoch, trace and the caller's headers. */
interface Carried extends CallOptions {
  readonly serviceToken: string | undefined;
  readonly traceparent: string | undefined;
}

/**
 * The metadata of a call.
 * @throws InvalidRequestError INVALID_HEADER naming the key of a value that no header may have
 */
export function callMetadata(carried: Carried): Metadata {
  const metadata = new Metadata();
  const set = (key: string, value: string | undefined): void => {
    if (value === undefined) return;
    try {
      metadata.set(key, value);
    } catch {
      // The error is not passed on, since it quotes the value, which may be a credential.
      throw new InvalidRequestError(
        'INVALID_HEADER',
        `${key}: no metadata key of that name may have this value.`,
        { metadata_key: key },
      );
    }
  };
  for (const [key, value] of Object.entries(carried.headers ?? {})) set(key, value);
  const { serviceToken } = carried;
  set(METADATA.authorization, serviceToken === undefined ? undefined : `Bearer ${serviceToken}`);
  set(METADATA.agentToken, carried.agentToken);
  set(METADATA.slotGrant, carried.slotGrant);
  set(METADATA.epoch, carried.epoch?.toString());
  set(METADATA.traceparent, carried.traceparent);
  return metadata;
}
