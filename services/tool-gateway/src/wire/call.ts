import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import type {
  CallKey as CallKeyMessage,
  CallToolResponseSchema,
} from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { ResultKind } from '@writ/contracts/writ/tool/v1/tool_pb';
import { type CallKey, InvalidRequestError } from '@writ/kernel';
import type { Repetition } from '../domain/find-loop.ts';
import type { CallRow } from '../store/calls.ts';

const STATUSES: Readonly<Record<CallRow['state'], CallStatus>> = {
  intent: CallStatus.UNSPECIFIED,
  ok: CallStatus.OK,
  error: CallStatus.ERROR,
  refused: CallStatus.REFUSED,
  unknown: CallStatus.UNKNOWN,
  burnt: CallStatus.VOID,
};

const KINDS = { json: ResultKind.JSON, text: ResultKind.TEXT, image: ResultKind.IMAGE } as const;

/** The protobuf status of a call. */
export function statusOf({ state }: Pick<CallRow, 'state'>): CallStatus {
  return STATUSES[state];
}

/**
 * Reads the key of a call.
 * @throws InvalidRequestError CALL_REQUIRED when `call` is undefined
 */
export function toCallKey(call: CallKeyMessage | undefined): CallKey {
  if (call === undefined) {
    throw new InvalidRequestError('CALL_REQUIRED', 'call is required.', { field: 'call' });
  }
  const { tenant, runId, agentInstance, callId } = call;
  return { tenant, runId, instance: agentInstance, callId };
}

/**
 * Returns the response for a call with an outcome. Every repeat gets the same response, except for `replayed`, until an
 * unknown outcome is resolved or the result is deleted (TG-1).
 */
export function toCallToolResponse(
  call: CallRow,
  replayed: boolean,
): MessageInitShape<typeof CallToolResponseSchema> {
  return {
    status: statusOf(call),
    stopReason: call.stop_reason,
    message: call.message,
    ...(call.result_kind !== null &&
      call.result_content !== null && {
        result: {
          kind: KINDS[call.result_kind],
          content: call.result_content,
          mediaType: call.result_media_type,
          truncated: call.result_truncated,
          fullSizeBytes: BigInt(call.result_full_size),
          fullSha256: call.result_full_sha256,
        },
      }),
    ...(call.repetition !== null && { repetition: JSON.parse(call.repetition) as Repetition }),
    receipt: call.receipt ?? '',
    replayed,
    ...(call.duration_ms !== null && { duration: durationFromMs(call.duration_ms) }),
  };
}
