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
import type { Counter, FloorSigners } from './counter.ts';
import { ANY_DIGEST, createPapers, type Papers, TOOL } from './papers.ts';

/** What a step says and hears: the messages of an agent that counts, one tool call a step. */
export interface StepMessages {
  readonly generate: MessageInitShape<typeof GenerateRequestSchema>;
  readonly attemptStarted: MessageInitShape<typeof GenerateResponseSchema>;
  readonly finished: MessageInitShape<typeof GenerateResponseSchema>;
  readonly review: MessageInitShape<typeof ReviewActionRequestSchema>;
  readonly decision: MessageInitShape<typeof DecisionSchema>;
  /** Without the writ, which is the decision's. */
  readonly call: MessageInitShape<typeof CallToolRequestSchema>;
  readonly outcome: MessageInitShape<typeof CallToolResponseSchema>;
}

const MODEL = 'counting';
/** Tells the model's questions apart from those of governed steps. */
const GOAL = 'the floor itself';

/** The messages of every step of a run that counts to `limit`, the first step's first. */
export async function createMessages(
  signers: FloorSigners,
  counter: Counter,
  limit: number,
): Promise<readonly StepMessages[]> {
  const papers = await createPapers(signers, counter);
  return Array.from({ length: limit }, (_, index) => ({
    ...modelMessages(index + 1, limit),
    ...reviewMessages(index + 1, papers),
    ...toolMessages(index + 1, papers, counter),
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
  for (let n = 1; n < step; n += 1) messages.push(wish(n), result(n));
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
          description: 'Gives back a number.',
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
          message: wish(step),
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
  { writ, receipt }: Papers,
): Pick<StepMessages, 'review' | 'decision'> {
  const value = { tool: TOOL, argumentsJson: args(step) };
  const action = { kind: { case: 'tool', value } } as const;
  // What the step before came to is shown with the next proposal.
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
  { receipt }: Papers,
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

/** A step has two calls: the model's, and the one that it proposes. */
function modelCallId(step: number): string {
  return `op-${2 * step}`;
}

function callId(step: number): string {
  return `op-${2 * step + 1}`;
}

function args(n: number): string {
  return JSON.stringify({ n });
}

function wish(n: number): MessageInitShape<typeof ChatMessageSchema> {
  const value = { toolUseId: `call_${n}`, tool: TOOL, argumentsJson: args(n) };
  return { role: ChatRole.ASSISTANT, parts: [{ kind: { case: 'toolUse', value } }] };
}

function result(n: number): MessageInitShape<typeof ChatMessageSchema> {
  const value = { toolUseId: `call_${n}`, content: args(n) };
  return { role: ChatRole.TOOL, parts: [{ kind: { case: 'toolResult', value } }] };
}
