import { Metadata } from '@grpc/grpc-js';
import { InvalidRequestError } from '@writ/kernel';
import { METADATA } from '../caller.ts';
import type { CallOptions } from './call-options.ts';

/** The values from which the metadata of a call is built: credentials, epoch, trace, time and the caller's headers. */
interface MetadataOptions extends CallOptions {
  readonly serviceToken: string | undefined;
  readonly traceparent: string | undefined;
  /** The current time of the caller's clock, ms since 1970. */
  readonly timeMs: number;
}

/**
 * Builds the metadata of a call.
 * @throws InvalidRequestError INVALID_HEADER naming the key whose value is not a valid header value
 */
export function callMetadata(options: MetadataOptions): Metadata {
  const metadata = new Metadata();
  const set = (key: string, value: string | undefined): void => {
    if (value === undefined) return;
    try {
      metadata.set(key, value);
    } catch {
      // The cause is omitted: it quotes the value, which may be a credential.
      throw new InvalidRequestError(
        'INVALID_HEADER',
        `Metadata key ${key} or its value contains characters that are not allowed.`,
        { metadata_key: key },
      );
    }
  };
  for (const [key, value] of Object.entries(options.headers ?? {})) set(key, value);
  const { serviceToken } = options;
  set(METADATA.authorization, serviceToken === undefined ? undefined : `Bearer ${serviceToken}`);
  // Only services send the time of their clock.
  if (serviceToken !== undefined) set(METADATA.time, String(options.timeMs));
  set(METADATA.agentToken, options.agentToken);
  set(METADATA.slotGrant, options.slotGrant);
  set(METADATA.epoch, options.epoch?.toString());
  set(METADATA.traceparent, options.traceparent);
  return metadata;
}
