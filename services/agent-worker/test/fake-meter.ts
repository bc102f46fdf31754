import { clone, toJsonString } from '@bufbuild/protobuf';
import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { ChatRole, EndReason } from '@writ/contracts/writ/model/v1/model_pb';
import {
  type GenerateRequest,
  GenerateRequestSchema,
  ModelService,
} from '@writ/contracts/writ/model/v1/model_service_pb';
import { DeadlineError, isWritError, type JsonObject, wrapUnknown } from '@writ/kernel';
import { partialRoute, type Route, requireAgent, route } from '@writ/rpc';
import { agentKey, lineOf } from './delivery.ts';
import { reused } from './fake-reviews.ts';
import type { FaultSwitches } from './fault-switches.ts';

/** Output of a fake model: text or tool calls. */
export type FakeAnswer =
  | string
  | {
      readonly text?: string;
      readonly toolUses: readonly { readonly tool: string; readonly args: JsonObject }[];
    }
  | {
      readonly text: string;
      /** The answer was truncated. */
      readonly isCut?: boolean;
      /** The budget is nearly used up. */
      readonly nearBudget?: boolean;
    };

/** A model: a function from the prompt's JSON to an answer. */
export type FakeModel = (
  prompt: JsonObject,
  request: GenerateRequest,
  agent: string,
) => Promise<FakeAnswer> | FakeAnswer;

/** Answers model calls from a fake model idempotently, as the contract requires. */
export class FakeMeter {
  /** call_ids of charged calls; repeats are not listed. */
  readonly paid: string[] = [];
  readonly requests: GenerateRequest[] = [];
  /** Epochs of workers that have taken over an agent. */
  readonly admitted: (bigint | undefined)[] = [];
  model: FakeModel;
  /** Returns the encoded events in the answer of a call; by default, an answer has no events. */
  eventsOf: (request: GenerateRequest) => readonly Uint8Array<ArrayBuffer>[] = () => [];
  /** The catalog. */
  models: { readonly alias: string; readonly providerId: string }[] = [];
  readonly #faults: FaultSwitches;
  readonly #answers = new Map<string, { readonly request: string; readonly answer: FakeAnswer }>();

  constructor(faults: FaultSwitches, model: FakeModel) {
    this.#faults = faults;
    this.model = model;
  }

  routes(): Route[] {
    const meter = this;
    return [
      partialRoute(ExecutionMeterService, {
        getTab: async (_request, { caller }) => {
          this.admitted.push(caller.epoch);
          return {};
        },
      }),
      route(ModelService, {
        listModels: async () => ({ models: meter.models }),
        countTokens: async () => ({}),
        accessResponse: async () => ({}),
        async *generate(request, call) {
          const { runId, agent } = requireAgent(call);
          meter.requests.push(request);
          try {
            const line = lineOf(agent.instance, request.callId);
            await meter.#faults.pass(`before generate ${line}`);
            const paid = meter.paid.length;
            const answer = await meter.#answer(runId, agent.instance, request);
            // A recorded answer has no deltas.
            if (request.deltas && meter.paid.length > paid) yield* deltasOf(answer);
            await meter.#faults.pass(`after generate ${line}`);
            yield {
              chunk: {
                case: 'finished',
                value: {
                  message: { role: ChatRole.ASSISTANT, parts: partsOf(answer, request.callId) },
                  endReason: endReasonOf(answer),
                  nearBudget: typeof answer === 'object' && 'nearBudget' in answer,
                  events: meter.eventsOf(request).map((event) => ({ event })),
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

  async #answer(runId: string, instance: string, request: GenerateRequest): Promise<FakeAnswer> {
    const key = `${agentKey(runId, instance)}/${request.callId}`;
    const text = toJsonString(GenerateRequestSchema, comparable(request));
    const known = this.#answers.get(key);
    if (known !== undefined) {
      if (known.request !== text) throw reused(request.callId);
      return known.answer;
    }
    this.paid.push(lineOf(instance, request.callId));
    const answer = await this.model(promptOf(request), request, instance);
    this.#answers.set(key, { request: text, answer });
    return answer;
  }
}

/** Returns the request without the fields that may differ when the call is repeated. */
function comparable(request: GenerateRequest): GenerateRequest {
  const asked = { ...clone(GenerateRequestSchema, request), deltas: false, after: [] };
  delete asked.timeout;
  delete asked.disconnectGrace;
  return asked;
}

/** Returns the JSON of the user's turn; an empty object when the turn is not JSON. */
export function promptOf({ messages }: GenerateRequest): JsonObject {
  const part = messages.at(-1)?.parts[0]?.kind;
  const isJson = part?.case === 'text' && part.value.startsWith('{');
  return JSON.parse(isJson ? part.value : '{}') as JsonObject;
}

/** Splits an answer's text into deltas, as a provider does. */
function* deltasOf(answer: FakeAnswer) {
  yield { chunk: { case: 'attemptStarted' as const, value: { attempt: 1 } } };
  const text = typeof answer === 'string' ? answer : (answer.text ?? '');
  for (const [piece] of text.matchAll(/.{1,16}/gs)) {
    yield { chunk: { case: 'textDelta' as const, value: { text: piece } } };
  }
}

function endReasonOf(answer: FakeAnswer): EndReason {
  if (typeof answer === 'string') return EndReason.END_TURN;
  if ('toolUses' in answer) return EndReason.TOOL_USE;
  return answer.isCut === true ? EndReason.MAX_TOKENS : EndReason.END_TURN;
}

function partsOf(answer: FakeAnswer, callId: string) {
  if (typeof answer === 'string') return [{ kind: { case: 'text' as const, value: answer } }];
  const { text = '' } = answer;
  const toolUses = 'toolUses' in answer ? answer.toolUses : [];
  return [
    ...(text === '' ? [] : [{ kind: { case: 'text' as const, value: text } }]),
    ...toolUses.map(({ tool, args }, index) => {
      const toolUseId = `use-${callId}-${index}`;
      const value = { toolUseId, tool, argumentsJson: JSON.stringify(args) };
      return { kind: { case: 'toolUse' as const, value } };
    }),
  ];
}

/** The meter's error when the model did not answer in time. */
export function modelTimeout(): DeadlineError {
  return new DeadlineError('LLM_TIMEOUT', 'The model did not answer in time.', {
    stop_reason: 'llm_timeout',
  });
}
