import { type DescMessage, type MessageShape, toBinary } from '@bufbuild/protobuf';
import { sha256Hex } from '@writ/kernel';

/**
 * Returns the digest of a request. It distinguishes a repeated request from a different request with the same id.
 */
export function requestDigest<D extends DescMessage>(schema: D, message: MessageShape<D>): string {
  return sha256Hex(toBinary(schema, message, { writeUnknownFields: false }));
}
