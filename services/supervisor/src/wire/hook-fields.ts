import type { MessageInitShape } from '@bufbuild/protobuf';
import { durationFromMs, timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { HookEvent } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import type { UsageSchema } from '@writ/contracts/writ/meter/v1/usage_pb';
import type { AgentRef } from '@writ/kernel';
import type { Receipt } from '../domain/facts/receipt.ts';
import type { RunUsage } from '../domain/result/run-usage.ts';
import type { RunRow } from '../store/run/runs.ts';

/** The fields of a hook event that depend on its type. */
export type EventFields = Partial<
  Pick<
    HookEvent,
    | 'status'
    | 'costNanoUsd'
    | 'estimated'
    | 'approvalId'
    | 'haltId'
    | 'toolName'
    | 'argsSha256'
    | 'eventTime'
    | 'duration'
    | 'emitter'
  > & {
    usage: MessageInitShape<typeof UsageSchema>;
    otherAgent: AgentRef;
  }
>;

/** How a run or a child ended. */
export interface RunEnd {
  readonly stopReason: string;
  readonly usage: RunUsage;
}

/** The run, agent and call of an event. */
export interface EventScope {
  readonly run: Pick<RunRow, 'tenant' | 'run_id' | 'session_id' | 'traceparent'>;
  readonly agent: AgentRef;
  readonly step?: number;
  readonly callId?: string;
}

/** The fields of a receipt that tool events contain. */
export type ReceiptedCall = Pick<
  Receipt,
  'tool' | 'stopReason' | 'argsSha256' | 'startedAt' | 'endedAt'
> & {
  /** Whether the gateway publishes the event itself. */
  readonly isPublished: boolean;
};

/** The fields of HALTED and HALT_LIFTED. */
export function haltFields(name: 'HALTED' | 'HALT_LIFTED', haltId: string): EventFields {
  return { haltId, status: name === 'HALTED' ? 'halted' : 'lifted' };
}

/** The fields of RUN_END. */
export function endFields({ stopReason, usage }: RunEnd): EventFields {
  return {
    status: stopReason,
    usage: {
      inputTokens: BigInt(usage.inputTokens),
      cachedInputTokens: BigInt(usage.cachedInputTokens),
      cacheWriteInputTokens: BigInt(usage.cacheWriteInputTokens),
      outputTokens: BigInt(usage.outputTokens),
      reasoningTokens: BigInt(usage.reasoningTokens),
    },
    costNanoUsd: BigInt(usage.costNanoUsd),
    estimated: usage.estimatedTurns > 0,
  };
}

/** The fields of TOOL_START; `at` is the event time when the receipt has no start time. */
export function toolStartFields(
  { tool: toolName, argsSha256, startedAt, isPublished }: ReceiptedCall,
  at: Date,
): EventFields {
  return {
    ...toolEmitter(isPublished),
    status: 'ok',
    toolName,
    argsSha256,
    eventTime: timestampFromDate(startedAt ?? at),
  };
}

/** The fields of TOOL_END; `at` is the event time when the receipt has no end time. */
export function toolEndFields(call: ReceiptedCall, at: Date): EventFields {
  const { tool, stopReason, argsSha256, startedAt, endedAt, isPublished } = call;
  return {
    ...toolEmitter(isPublished),
    status: stopReason === '' ? 'ok' : stopReason,
    toolName: tool,
    argsSha256,
    eventTime: timestampFromDate(endedAt ?? at),
    ...(startedAt && endedAt && { duration: durationFromMs(msBetween(startedAt, endedAt)) }),
  };
}

function toolEmitter(isPublished: boolean): { readonly emitter: string } {
  return { emitter: isPublished ? 'tool-gateway' : 'supervisor' };
}

/** Returns the milliseconds between two times; zero if the gateway's clock was set back in between. */
function msBetween(from: Date, to: Date): number {
  return Math.max(0, to.getTime() - from.getTime());
}
