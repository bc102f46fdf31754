import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs } from '@bufbuild/protobuf/wkt';
import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import {
  type ChatMessageSchema,
  ChatRole,
  EndReason,
  type Finished,
  ResponseFormat,
  ToolChoice,
} from '@writ/contracts/writ/model/v1/model_pb';
import {
  type GenerateRequestSchema,
  ModelService,
} from '@writ/contracts/writ/model/v1/model_service_pb';
import { omitUndefined, UnavailableError } from '@writ/kernel';
import { type CallOptions, createRpcClient, type RpcClientOptions } from '@writ/rpc';
import { type CarriedEvent, carriedEvent } from '../domain/agent/carried-event.ts';
import type {
  ChatTurn,
  DeltaListener,
  LlmOutcome,
  LlmRequest,
} from '../domain/calls/model-call.ts';

/** One model call. */
interface GenerateCall {
  readonly callId: string;
  /** Zero outside a step. */
  readonly step: number;
  /** Ids of earlier events of the agent that precede the call on the agent's timeline. */
  readonly after: readonly string[];
  readonly request: LlmRequest;
  /** Receives the events of the call, even when the call fails. */
  readonly onEvents: (events: readonly CarriedEvent[]) => void;
  /** Receives the answer's text while it is generated. */
  readonly listener?: DeltaListener;
}

/** Client of the execution-meter. */
export interface ExecutionMeterPeer {
  /** Makes the execution-meter reject calls of workers that held an earlier lease of the agent (RT-2). */
  admitEpoch(options: CallOptions): Promise<void>;
  /**
   * Calls a model. A repeated call returns the recorded answer without charge (EM-7).
   * @throws the error with which the meter ends the stream; UnavailableError MODEL_CALL_INCOMPLETE when the stream ends
   *   without an answer
   */
  generate(call: GenerateCall, options: CallOptions): Promise<LlmOutcome>;
  /** Lists the models that the agent may use. */
  listModels(options: CallOptions): Promise<readonly ModelChoice[]>;
  close(): void;
}

/** A model of the catalog. */
interface ModelChoice {
  readonly alias: string;
  /** Identifies the endpoint of the provider. */
  readonly provider: string;
}

const ROLES = {
  system: ChatRole.SYSTEM,
  user: ChatRole.USER,
  assistant: ChatRole.ASSISTANT,
  tool: ChatRole.TOOL,
} as const satisfies Record<ChatTurn['role'], ChatRole>;

/** Creates a gRPC client of the execution-meter. */
export function createExecutionMeterPeer(options: RpcClientOptions): ExecutionMeterPeer {
  const client = createRpcClient(ModelService, options);
  const tabs = createRpcClient(ExecutionMeterService, options);
  return {
    async admitEpoch(callOptions) {
      await tabs.getTab({}, callOptions);
    },
    async generate(call, callOptions) {
      let finished: Finished | undefined;
      // A failed call ends the stream with a gRPC status, from which the caller derives its reaction.
      const { listener } = call;
      listener?.begun();
      for await (const { chunk } of client.generate(toGenerateRequest(call), callOptions)) {
        if (chunk.case === 'finished') {
          finished = chunk.value;
          call.onEvents(finished.events.map(({ event, mac }) => carriedEvent(event, mac)));
        }
        if (chunk.case === 'textDelta') listener?.textGenerated(chunk.value.text);
        else if (chunk.case === 'attemptStarted') listener?.attemptStarted(chunk.value.attempt);
      }
      if (finished?.message !== undefined) return answerFrom(finished);
      throw new UnavailableError(
        'MODEL_CALL_INCOMPLETE',
        'The execution-meter ended the stream without an answer.',
        { call_id: call.callId },
      );
    },
    async listModels(callOptions) {
      const { models } = await client.listModels({}, callOptions);
      return models.map(({ alias, providerId }) => ({ alias, provider: providerId }));
    },
    close: () => {
      client.close();
      tabs.close();
    },
  };
}

function toGenerateRequest({
  callId,
  step,
  after,
  request,
  listener,
}: GenerateCall): MessageInitShape<typeof GenerateRequestSchema> {
  const { model, messages, tools = [], toolChoice, json, requireContent } = request;
  const { temperature, maxOutputTokens, timeoutMs } = request;
  return {
    callId,
    model,
    step,
    after: [...after],
    messages: messages.map(messageOf),
    tools: [...tools],
    ...(toolChoice !== undefined && {
      toolChoice: ToolChoice.NAMED,
      toolChoiceName: toolChoice,
    }),
    responseFormat: json ? ResponseFormat.JSON_OBJECT : ResponseFormat.TEXT,
    requireContent,
    deltas: listener !== undefined,
    ...omitUndefined({ temperature }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens: BigInt(maxOutputTokens) }),
    ...(timeoutMs !== undefined && { timeout: durationFromMs(timeoutMs) }),
  };
}

function messageOf(turn: ChatTurn): MessageInitShape<typeof ChatMessageSchema> {
  const role = ROLES[turn.role];
  if (turn.role === 'tool') {
    const parts = turn.results.map(({ id, text, isError }) => {
      const value = { toolUseId: id, content: text, isError };
      return { kind: { case: 'toolResult' as const, value } };
    });
    return { role, parts };
  }
  const uses = turn.role === 'assistant' ? (turn.toolUses ?? []) : [];
  // An assistant turn with only tool calls has no text.
  const texts = turn.text === '' && uses.length > 0 ? [] : [turn.text];
  return {
    role,
    parts: [
      ...texts.map((value) => ({ kind: { case: 'text' as const, value } })),
      ...uses.map(({ id, tool, argumentsJson }) => {
        const value = { toolUseId: id, tool, argumentsJson };
        return { kind: { case: 'toolUse' as const, value } };
      }),
    ],
  };
}

function answerFrom({ message, endReason, nearBudget }: Finished): LlmOutcome {
  const parts = message?.parts ?? [];
  const texts = parts.map(({ kind }) => (kind.case === 'text' ? kind.value : ''));
  const toolUses = parts.flatMap(({ kind }) => {
    if (kind.case !== 'toolUse') return [];
    const { toolUseId: id, tool, argumentsJson } = kind.value;
    return [{ id, tool, argumentsJson }];
  });
  return {
    kind: 'answer',
    text: texts.join(''),
    ...(toolUses.length > 0 && { toolUses }),
    endReason: endReasonOf(endReason),
    nearBudget,
  };
}

function endReasonOf(reason: EndReason) {
  switch (reason) {
    case EndReason.END_TURN:
      return 'end_turn';
    case EndReason.TOOL_USE:
      return 'tool_use';
    case EndReason.MAX_TOKENS:
      return 'max_tokens';
    case EndReason.CONTENT_FILTER:
      return 'content_filter';
    default:
      return 'unknown';
  }
}
