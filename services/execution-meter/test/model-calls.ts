import type { DescMessage, MessageInitShape } from '@bufbuild/protobuf';
import { ChatRole, type Finished } from '@writ/contracts/writ/model/v1/model_pb';
import type {
  GenerateRequestSchema,
  GenerateResponse,
} from '@writ/contracts/writ/model/v1/model_service_pb';
import type { WritError } from '@writ/kernel';

/** Initializer of a message. */
export type Init<D extends DescMessage> = Extract<MessageInitShape<D>, { $typeName?: never }>;

/** Complete result of a Generate call. */
export interface Generated {
  readonly chunks: readonly GenerateResponse[];
  readonly finished: Finished | undefined;
  readonly error: WritError | undefined;
}

/** Returns a request with one message. */
export function ask(
  request: Init<typeof GenerateRequestSchema> = {},
): MessageInitShape<typeof GenerateRequestSchema> {
  return {
    callId: 'op-1',
    model: 'hello',
    messages: [
      { role: ChatRole.USER, parts: [{ kind: { case: 'text', value: 'Say hello, please.' } }] },
    ],
    ...request,
  };
}

/** Returns the text of an answer. */
export function textOf({ finished }: Generated): string {
  return (finished?.message?.parts ?? [])
    .map(({ kind }) => (kind.case === 'text' ? kind.value : ''))
    .join('');
}
