import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import type { CallToolResponseSchema } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { ResultKind } from '@writ/contracts/writ/tool/v1/tool_pb';
import { statusOf } from '../app/receipts/sign-receipt.ts';
import type { CallState } from '../domain/call-state.ts';
import type { Repetition } from '../domain/checks.ts';
import type { CallRow } from '../store/calls.ts';

const KINDS = { json: ResultKind.JSON, text: ResultKind.TEXT, image: ResultKind.IMAGE } as const;

/** Where a stored call stands; `live` says whether a process is working on it. */
export function callStateOf({ state }: Pick<CallRow, 'state'>, live: boolean): CallState {
  if (state === 'intent') return live ? 'running' : 'interrupted';
  return state;
}

/** The answer to a call with an outcome, the first time and every time after (TG-1). */
export function toCallToolResponse(
  call: CallRow,
  replayed: boolean,
): MessageInitShape<typeof CallToolResponseSchema> {
  return {
    status: statusOf(call),
    stopReason: call.stop_reason,
    message: call.message,
    ...(call.result_kind === null || call.result_content === null
      ? {}
      : {
          result: {
            kind: KINDS[call.result_kind],
            content: call.result_content,
            mediaType: call.result_media_type,
            truncated: call.result_truncated,
            fullSizeBytes: BigInt(call.result_full_size),
            fullSha256: call.result_full_sha256,
          },
        }),
    ...(call.repetition === null ? {} : { repetition: JSON.parse(call.repetition) as Repetition }),
    receipt: call.receipt ?? '',
    replayed,
    ...(call.duration_ms === null ? {} : { duration: durationFromMs(call.duration_ms) }),
  };
}
