import type { MessageInitShape } from '@bufbuild/protobuf';
import type { TotalsSchema } from '@writ/contracts/writ/meter/v1/usage_pb';
import {
  type HistoryEntrySchema,
  type RunResultSchema,
  RunStatus as StatusMessage,
  type TraceRowSchema,
} from '@writ/contracts/writ/run/v1/run_pb';
import type { RunStatus } from '@writ/kernel';
import { omitUndefined } from '@writ/kernel';
import type { HistoryEntry, RunResult, TraceRow } from '../domain/result/run-result.ts';
import type { RunUsage } from '../domain/result/run-usage.ts';
import {
  actionMessage,
  executedFromMessage,
  humanApprovalMessage,
  verdictMessage,
} from './action.ts';

const STATUSES: Readonly<Record<RunStatus, StatusMessage>> = {
  ok: StatusMessage.OK,
  partial: StatusMessage.PARTIAL,
  stopped: StatusMessage.STOPPED,
};

/** Converts the result of a run (SV-7). */
export function resultMessage(result: RunResult): MessageInitShape<typeof RunResultSchema> {
  return {
    status: STATUSES[result.status],
    stopReason: result.stopReason,
    phase: result.phase ?? '',
    answer: result.answer,
    usage: totalsMessage(result.usage),
    trace: result.trace.map(traceRowMessage),
    history: result.history.map(historyEntryMessage),
    rawAction: result.rawAction ?? '',
    ...(result.action && { action: actionMessage(result.action) }),
    detail: result.detail,
    workerDetail: result.workerDetail,
    unverified: result.unverified,
  };
}

/** Converts usage. */
function totalsMessage(usage: RunUsage): MessageInitShape<typeof TotalsSchema> {
  return {
    usage: {
      inputTokens: BigInt(usage.inputTokens),
      cachedInputTokens: BigInt(usage.cachedInputTokens),
      cacheWriteInputTokens: BigInt(usage.cacheWriteInputTokens),
      outputTokens: BigInt(usage.outputTokens),
      reasoningTokens: BigInt(usage.reasoningTokens),
    },
    costNanoUsd: BigInt(usage.costNanoUsd),
    turns: BigInt(usage.turns),
    estimatedTurns: BigInt(usage.estimatedTurns),
    failedCalls: BigInt(usage.failedCalls),
  };
}

function traceRowMessage(row: TraceRow): MessageInitShape<typeof TraceRowSchema> {
  return {
    step: row.step,
    tool: row.tool,
    argsHash: row.argsHash ?? '',
    supervisorDecision: verdictMessage(row.decision),
    executedFrom: executedFromMessage(row.executedFrom),
    ok: row.ok,
    stopReason: row.stopReason ?? '',
    ...omitUndefined({ humanApproved: row.humanApproved }),
    agent: row.agent,
    callId: row.callId,
    // A result that was stored before the field existed has none.
    riskScore: row.riskScore ?? 0,
    outcome: row.outcome ?? '',
  };
}

function historyEntryMessage(entry: HistoryEntry): MessageInitShape<typeof HistoryEntrySchema> {
  return {
    step: entry.step,
    action: actionMessage(entry.action),
    decision: verdictMessage(entry.decision),
    reason: entry.reason,
    ...(entry.revisedAction && { revisedAction: actionMessage(entry.revisedAction) }),
    executedAction: actionMessage(entry.executedAction),
    executedFrom: executedFromMessage(entry.executedFrom),
    observationJson: entry.observationJson,
    ...(entry.humanApproval && { humanApproval: humanApprovalMessage(entry.humanApproval) }),
    agent: entry.agent,
    callId: entry.callId,
    unverified: entry.executedAction.kind === 'client_tool',
  };
}
