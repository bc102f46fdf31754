import { create } from '@bufbuild/protobuf';
import {
  ChatMessageSchema,
  ChatRole,
  EndReason,
  type Finished,
} from '@writ/contracts/writ/model/v1/model_pb';
import type { ModelToolCall } from './dialects/review-form.ts';

/** Returns the answer with the approved arguments in its tool calls. */
export function withCalls(finished: Finished, calls: ReadonlyMap<string, ModelToolCall>): Finished {
  const { message } = finished;
  if (message === undefined || calls.size === 0) return finished;
  const parts = message.parts.map((part) => {
    if (part.kind.case !== 'toolUse') return part;
    const { argumentsJson = '' } = calls.get(part.kind.value.toolUseId) ?? {};
    return { ...part, kind: { ...part.kind, value: { ...part.kind.value, argumentsJson } } };
  });
  return { ...finished, message: { ...message, parts } };
}

/** Returns the answer with a text in place of its message, which ends the turn. */
export function endedWithText(finished: Finished, text: string): Finished {
  const parts = [{ kind: { case: 'text', value: text } } as const];
  const message = create(ChatMessageSchema, { role: ChatRole.ASSISTANT, parts });
  return { ...finished, message, endReason: EndReason.END_TURN };
}
