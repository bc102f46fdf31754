import { toJsonString } from '@bufbuild/protobuf';
import { EndReason } from '@writ/contracts/writ/model/v1/model_pb';
import {
  type GenerateRequest,
  GenerateRequestSchema,
  ModelService,
} from '@writ/contracts/writ/model/v1/model_service_pb';
import { DeadlineError, isWritError, type JsonObject, wrapUnknown } from '@writ/kernel';
import { type Route, requireAgent, route, unimplemented } from '@writ/rpc';
import { reused } from './fake-supervisor.ts';
import type { FaultSwitches } from './fault-switches.ts';

/** A model: the prompt's JSON in, text out. */
export type FakeModel = (prompt: JsonObject, request: GenerateRequest) => Promise<string> | string;

/** Answers model calls from a fake model, and remembers as the contract asks. */
export class FakeMeter {
  /** call_ids of calls that were paid for; repeats leave none. */
  readonly paid: string[] = [];
  readonly requests: GenerateRequest[] = [];
  model: FakeModel;
  readonly #faults: FaultSwitches;
  readonly #answers = new Map<string, { readonly request: string; readonly text: string }>();

  constructor(faults: FaultSwitches, model: FakeModel) {
    this.#faults = faults;
    this.model = model;
  }

  routes(): Route[] {
    const meter = this;
    return [
      route(ModelService, {
        listModels: unimplemented('The fake meter does not do this.'),
        async *generate(request, call) {
          const { runId } = requireAgent(call);
          meter.requests.push(request);
          try {
            await meter.#faults.pass(`before generate ${request.callId}`);
            const text = await meter.#answer(runId, request);
            await meter.#faults.pass(`after generate ${request.callId}`);
            yield {
              chunk: {
                case: 'finished',
                value: {
                  message: { role: 3, parts: [{ kind: { case: 'text', value: text } }] },
                  endReason: EndReason.END_TURN,
                },
              },
            };
          } catch (error) {
            const { reason, message, metadata } = wrapUnknown(error);
            if (isWritError(error) && metadata.stop_reason !== undefined) {
              const failure = { stopReason: metadata.stop_reason, reason, message };
              yield { chunk: { case: 'finished', value: { failure } } };
            }
            throw error;
          }
        },
      }),
    ];
  }

  async #answer(runId: string, request: GenerateRequest): Promise<string> {
    const key = `${runId}/${request.callId}`;
    const text = toJsonString(GenerateRequestSchema, request);
    const known = this.#answers.get(key);
    if (known !== undefined) {
      if (known.request !== text) throw reused(request.callId);
      return known.text;
    }
    this.paid.push(request.callId);
    const answer = await this.model(promptOf(request), request);
    this.#answers.set(key, { request: text, text: answer });
    return answer;
  }
}

/** The JSON of the user's turn. */
export function promptOf({ messages }: GenerateRequest): JsonObject {
  const part = messages.at(-1)?.parts[0]?.kind;
  return JSON.parse(part?.case === 'text' ? part.value : '{}') as JsonObject;
}

/** What a meter says when the model did not answer in time. */
export function modelTimeout(): DeadlineError {
  return new DeadlineError('LLM_TIMEOUT', 'The model did not answer in time.', {
    stop_reason: 'llm_timeout',
  });
}
