import { type Message, toBinary } from '@bufbuild/protobuf';
import { OverloadedError } from '@writ/kernel';
import type { ServedMethod } from './served-service.ts';

/**
 * Encodes a response as protobuf. The size limit applies to these bytes, even if the response is sent as JSON.
 * @throws OverloadedError MESSAGE_TOO_LARGE with the limit
 */
export function encodeResponse(
  { name, implementation }: ServedMethod,
  message: Message,
  maxBytes: number,
): Uint8Array {
  const bytes = toBinary(implementation.method.output, message);
  if (bytes.byteLength <= maxBytes) return bytes;
  throw new OverloadedError(
    'MESSAGE_TOO_LARGE',
    `The response of ${name} has ${bytes.byteLength} bytes; the limit is ${maxBytes}.`,
    { limit: String(maxBytes) },
  );
}
