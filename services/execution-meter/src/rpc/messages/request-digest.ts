import { type DescMessage, type MessageShape, toBinary } from '@bufbuild/protobuf';
import { sha256Hex } from '@writ/kernel';

/** What tells a repeat of a request from another request under the same id. */
export function requestDigest<D extends DescMessage>(schema: D, message: MessageShape<D>): string {
  return sha256Hex(toBinary(schema, message, { writeUnknownFields: false }));
}
