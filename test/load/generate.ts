import { ChatRole, type Finished } from '@writ/contracts/writ/model/v1/model_pb';
import type { ModelService } from '@writ/contracts/writ/model/v1/model_service_pb';
import type { CallOptions, RpcClient } from '@writ/rpc';

/** One model call of an agent. */
export interface ModelCall {
  readonly callId: string;
  readonly model: string;
  /** Called with each part of the text of the answer; default: the parts are not requested. */
  readonly onDelta?: () => void;
}

/** Makes a model call and returns its `finished` chunk; throws when the call fails. */
export async function generate(
  models: RpcClient<typeof ModelService>,
  { callId, model, onDelta }: ModelCall,
  options: CallOptions,
): Promise<Finished> {
  let finished: Finished | undefined;
  const stream = models.generate(
    {
      callId,
      model,
      deltas: onDelta !== undefined,
      messages: [
        { role: ChatRole.USER, parts: [{ kind: { case: 'text', value: 'Say something.' } }] },
      ],
    },
    options,
  );
  for await (const { chunk } of stream) {
    if (chunk.case === 'textDelta') onDelta?.();
    if (chunk.case === 'finished') finished = chunk.value;
  }
  if (finished === undefined) throw new Error(`${callId} ended without finished.`);
  return finished;
}
