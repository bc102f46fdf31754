import { type DescMessage, type MessageShape, toBinary } from '@bufbuild/protobuf';
import type {
  AgentRef as AgentRefMessage,
  Priority as PriorityMessage,
} from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { weightOf } from '@writ/identity';
import { type AgentRef, assertId, Priority, sha256Hex } from '@writ/kernel';

/**
 * Reads an agent from a request.
 * @throws InvalidRequestError INVALID_ID naming the field if it is missing or malformed
 */
export function agentRefOf(message: AgentRefMessage | undefined, field: string): AgentRef {
  return {
    name: assertId(message?.name, `${field}.name`),
    instance: assertId(message?.instance, `${field}.instance`),
  };
}

/** Reads a priority from a request; NORMAL if it is not set (SUP-3). */
export function priorityOf(priority: PriorityMessage): Priority {
  return weightOf(priority) ?? Priority.NORMAL;
}

/**
 * Returns the digest of a request, which distinguishes a repeated request from a different request with the same id
 * (SB-9).
 */
export function requestDigest<D extends DescMessage>(schema: D, request: MessageShape<D>): string {
  return sha256Hex(toBinary(schema, request));
}
