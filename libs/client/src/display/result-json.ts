import type { Action } from '@writ/contracts/writ/review/v1/action_pb';
import { ExecutedFrom } from '@writ/contracts/writ/review/v1/action_pb';
import { Verdict } from '@writ/contracts/writ/review/v1/decision_pb';
import type { HistoryEntry, Run, RunResult, TraceRow } from '@writ/contracts/writ/run/v1/run_pb';
import { RunStatus } from '@writ/contracts/writ/run/v1/run_pb';
import { formatUsd, type JsonObject, type JsonValue } from '@writ/kernel/portable';
import { wordOf } from './word-of.ts';

/**
 * Returns a run as one JSON object: run_id, trace_id, status, stop_reason, answer, trace, history and usage, plus phase
 * and the action where it stopped (SV-7). Money is decimal USD. For a run without a result, returns only run_id,
 * trace_id and the status `unfinished`.
 */
export function resultJson(run: Run): JsonObject {
  const result = run.result;
  if (result === undefined) {
    return { run_id: run.runId, trace_id: run.traceId, status: 'unfinished' };
  }
  return {
    run_id: run.runId,
    trace_id: run.traceId,
    status: wordOf(RunStatus, result.status),
    stop_reason: result.stopReason,
    ...given('detail', result.detail),
    ...given('phase', result.phase),
    ...given('answer', result.answer),
    ...given('raw_action', result.rawAction),
    ...(result.action === undefined ? {} : { action: actionJson(result.action) }),
    ...(result.unverified
      ? { unverified: true, ...given('worker_detail', result.workerDetail) }
      : {}),
    trace: result.trace.map(traceRowJson),
    history: result.history.map(historyEntryJson),
    usage: usageJson(result),
  };
}

function traceRowJson(row: TraceRow): JsonObject {
  return {
    step: row.step,
    tool: row.tool,
    ...given('args_hash', row.argsHash),
    supervisor_decision: wordOf(Verdict, row.supervisorDecision),
    executed_from: wordOf(ExecutedFrom, row.executedFrom),
    ok: row.ok,
    ...given('stop_reason', row.stopReason),
    ...(row.humanApproved === undefined ? {} : { human_approved: row.humanApproved }),
    risk_score: row.riskScore,
    ...given('outcome', row.outcome),
  };
}

function historyEntryJson(entry: HistoryEntry): JsonObject {
  const human = entry.humanApproval;
  return {
    step: entry.step,
    ...(entry.action === undefined ? {} : { action: actionJson(entry.action) }),
    supervisor: {
      decision: wordOf(Verdict, entry.decision),
      reason: entry.reason,
      ...(entry.revisedAction === undefined
        ? {}
        : { revised_action: actionJson(entry.revisedAction) }),
    },
    ...(entry.executedAction === undefined
      ? {}
      : { executed_action: actionJson(entry.executedAction) }),
    executed_from: wordOf(ExecutedFrom, entry.executedFrom),
    ...(entry.observationJson === '' ? {} : { observation: parsed(entry.observationJson) }),
    ...(entry.unverified ? { unverified: true } : {}),
    ...(human === undefined
      ? {}
      : {
          human_approval: {
            approved: human.approved,
            ...given('comment', human.comment),
            ...given('basis', human.basis),
            decided_by: human.decidedBy,
          },
        }),
  };
}

/** An action in the form of json-action agents (SV-2). */
export function actionJson(action: Action): JsonObject {
  switch (action.kind.case) {
    case 'tool':
      return {
        kind: 'tool',
        name: action.kind.value.tool,
        args: parsed(action.kind.value.argumentsJson),
      };
    case 'clientTool': {
      const { tool, argumentsJson, definitionDigest } = action.kind.value;
      return {
        kind: 'client_tool',
        name: tool,
        args: parsed(argumentsJson),
        ...given('definition_digest', definitionDigest),
      };
    }
    case 'delegation':
      return { kind: 'delegation', agent: action.kind.value.agent, task: action.kind.value.task };
    case 'final':
      return { kind: 'final', answer: action.kind.value.answer };
    case undefined:
      return { kind: 'unknown' };
  }
}

function usageJson(result: RunResult): JsonObject {
  const totals = result.usage;
  return {
    input_tokens: Number(totals?.usage?.inputTokens ?? 0n),
    cached_input_tokens: Number(totals?.usage?.cachedInputTokens ?? 0n),
    cache_write_input_tokens: Number(totals?.usage?.cacheWriteInputTokens ?? 0n),
    output_tokens: Number(totals?.usage?.outputTokens ?? 0n),
    reasoning_tokens: Number(totals?.usage?.reasoningTokens ?? 0n),
    cost_usd: formatUsd(totals?.costNanoUsd ?? 0n),
    turns: Number(totals?.turns ?? 0n),
    estimated_turns: Number(totals?.estimatedTurns ?? 0n),
  };
}

function given(key: string, value: string): JsonObject {
  return value === '' ? {} : { [key]: value };
}

/** Parses observations and arguments; a text that is not valid JSON, such as a text result, is returned unchanged. */
function parsed(json: string): JsonValue {
  try {
    return JSON.parse(json) as JsonValue;
  } catch {
    return json;
  }
}
