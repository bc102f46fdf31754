import type { MessageInitShape } from '@bufbuild/protobuf';
import { timestampNow } from '@bufbuild/protobuf/wkt';
import { CallStatus } from '@writ/contracts/writ/identity/v1/claims_pb';
import {
  type ChatMessageSchema,
  ChatRole,
  EndReason,
  ResponseFormat,
} from '@writ/contracts/writ/model/v1/model_pb';
import type {
  GenerateRequestSchema,
  GenerateResponseSchema,
} from '@writ/contracts/writ/model/v1/model_service_pb';
import { ExecutedFrom } from '@writ/contracts/writ/review/v1/action_pb';
import { type DecisionSchema, Verdict } from '@writ/contracts/writ/review/v1/decision_pb';
import type { ReviewActionRequestSchema } from '@writ/contracts/writ/review/v1/review_service_pb';
import type {
  CallToolRequestSchema,
  CallToolResponseSchema,
} from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { ResultKind } from '@writ/contracts/writ/tool/v1/tool_pb';
import { newId } from '@writ/kernel';
import type { BaselineSigners, Counter } from './counter.ts';
import { ANY_DIGEST, createTokens, TOOL, type Tokens } from './tokens.ts';

/** The messages of one step of an agent that counts, with one tool call. */
export interface StepMessages {
  readonly generate: MessageInitShape<typeof GenerateRequestSchema>;
  readonly attemptStarted: MessageInitShape<typeof GenerateResponseSchema>;
  readonly finished: MessageInitShape<typeof GenerateResponseSchema>;
  readonly review: MessageInitShape<typeof ReviewActionRequestSchema>;
  readonly decision: MessageInitShape<typeof DecisionSchema>;
  /** Without the writ, which the decision contains. */
  readonly call: MessageInitShape<typeof CallToolRequestSchema>;
  readonly outcome: MessageInitShape<typeof CallToolResponseSchema>;
}

const MODEL = 'counting';
/** Distinguishes the model requests of the baseline from those of governed steps. */
const GOAL = 'baseline';

/** Creates the messages of every step of a run that counts to `limit`, in order. */
export async function createMessages(
  signers: BaselineSigners,
  counter: Counter,
  limit: number,
): Promise<readonly StepMessages[]> {
  const tokens = await createTokens(signers, counter);
  return Array.from({ length: limit }, (_, index) => ({
    ...modelMessages(index + 1, limit),
    ...reviewMessages(index + 1, tokens),
    ...toolMessages(index + 1, tokens, counter),
  }));
}

function modelMessages(
  step: number,
  limit: number,
): Pick<StepMessages, 'generate' | 'attemptStarted' | 'finished'> {
  const messages: MessageInitShape<typeof ChatMessageSchema>[] = [
    { role: ChatRole.SYSTEM, parts: [{ kind: { case: 'text', value: `Count to ${limit}.` } }] },
    { role: ChatRole.USER, parts: [{ kind: { case: 'text', value: GOAL } }] },
  ];
  for (let n = 1; n < step; n += 1) messages.push(toolUseMessage(n), toolResultMessage(n));
  const inputSchema = {
    type: 'object',
    properties: { n: { type: 'integer' } },
    required: ['n'],
  };
  return {
    generate: {
      callId: modelCallId(step),
      model: MODEL,
      messages,
      tools: [
        {
          name: TOOL,
          description: 'Returns a number.',
          inputSchemaJson: JSON.stringify(inputSchema),
        },
      ],
      temperature: 0,
      responseFormat: ResponseFormat.TEXT,
      step,
    },
    attemptStarted: {
      chunk: { case: 'attemptStarted', value: { attempt: 1, providerModel: MODEL } },
    },
    finished: {
      chunk: {
        case: 'finished',
        value: {
          message: toolUseMessage(step),
          endReason: EndReason.TOOL_USE,
          usage: { inputTokens: 100n, outputTokens: 10n },
          costNanoUsd: 56_000n,
          attempts: 1,
          providerModel: MODEL,
          runCostNanoUsd: 56_000n * BigInt(step),
          fittedMaxOutputTokens: 4_096n,
        },
      },
    },
  };
}

function reviewMessages(
  step: number,
  { writ, receipt }: Tokens,
): Pick<StepMessages, 'review' | 'decision'> {
  const value = { tool: TOOL, argumentsJson: args(step) };
  const action = { kind: { case: 'tool', value } } as const;
  // A proposal carries the receipt of the previous step.
  const isFirst = step === 1;
  return {
    review: {
      callId: callId(step),
      modelCallId: modelCallId(step),
      proposal: { case: 'action', value: action },
      receipts: isFirst ? [] : [receipt],
      observations: isFirst ? [] : [{ callId: callId(step - 1), content: args(step - 1) }],
    },
    decision: {
      decisionId: newId('dec'),
      callId: callId(step),
      step,
      verdict: Verdict.APPROVE,
      reason: 'fine',
      ruleId: 'count',
      risk: 0.05,
      policyVersion: ANY_DIGEST,
      action,
      executedAction: action,
      executedFrom: ExecutedFrom.ORIGINAL,
      writ,
      writExpireTime: timestampNow(),
      settled: true,
      decideTime: timestampNow(),
    },
  };
}

function toolMessages(
  step: number,
  { receipt }: Tokens,
  { tenant, runId, agent }: Counter,
): Pick<StepMessages, 'call' | 'outcome'> {
  return {
    call: {
      call: { tenant, runId, agentInstance: agent.instance, callId: callId(step) },
      tool: TOOL,
      argumentsJson: args(step),
      step,
    },
    outcome: {
      status: CallStatus.OK,
      result: {
        kind: ResultKind.JSON,
        content: args(step),
        fullSizeBytes: BigInt(args(step).length),
        fullSha256: ANY_DIGEST,
      },
      receipt,
      duration: {},
    },
  };
}

/** A step has two calls: the model call and the call that it proposes. */
function modelCallId(step: number): string {
  return `op-${2 * step}`;
}

function callId(step: number): string {
  return `op-${2 * step + 1}`;
}

function args(n: number): string {
  return JSON.stringify({ n });
}

function toolUseMessage(n: number): MessageInitShape<typeof ChatMessageSchema> {
  const value = { toolUseId: `call_${n}`, tool: TOOL, argumentsJson: args(n) };
  return { role: ChatRole.ASSISTANT, parts: [{ kind: { case: 'toolUse', value } }] };
}

function toolResultMessage(n: number): MessageInitShape<typeof ChatMessageSchema> {
  const value = { toolUseId: `call_${n}`, content: args(n) };
  return { role: ChatRole.TOOL, parts: [{ kind: { case: 'toolResult', value } }] };
}
