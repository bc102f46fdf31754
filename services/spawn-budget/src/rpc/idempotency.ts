import { type DescMessage, type MessageShape, toBinary } from '@bufbuild/protobuf';
import { sha256Hex } from '@writ/kernel';

/** Digest of a whole request, to tell a repeat from another request under the same id (SB-9). */
export function requestDigest<D extends DescMessage>(schema: D, request: MessageShape<D>): string {
  return sha256Hex(toBinary(schema, request));
}
