import { type Message, toBinary } from '@bufbuild/protobuf';
import { OverloadedError } from '@writ/kernel';
import type { ServedMethod } from './served-service.ts';

/**
 * The protobuf bytes of an answer; the size limit counts these whatever format the client gets.
 * @throws OverloadedError MESSAGE_TOO_LARGE with the limit
 */
export function encodeAnswer(
  { name, implementation }: ServedMethod,
  message: Message,
  maxBytes: number,
): Uint8Array {
  const bytes = toBinary(implementation.method.output, message);
  if (bytes.byteLength <= maxBytes) return bytes;
  throw new OverloadedError(
    'MESSAGE_TOO_LARGE',
    `The answer of ${name} has ${bytes.byteLength} bytes; the limit is ${maxBytes}.`,
    { limit: String(maxBytes) },
  );
}
