import { argsHash, omitUndefined, outcomeOf } from '@writ/kernel';
import { countEffects, isNothingDone } from './count-effects.ts';
import { handoffFailure, handoffObservation } from './handoff.ts';
import { actionName, isCall, type RecordedAction } from './recorded-action.ts';
import type { DecisionRecord, ReceiptRecord, ResultRecords } from './result-records.ts';
import type { HistoryEntry, RunResult, TraceRow } from './run-result.ts';
import { NO_USAGE } from './run-usage.ts';
import { stopSentence } from './stop-sentence.ts';

const FINAL_OBSERVATION = JSON.stringify({ status: 'final' });
const NO_VALID_ACTION = 'invalid_action:';

/**
 * Builds the result of a run from the supervisor's decisions, the gateway's receipts and the meter's closed tab
 * (SV-7). The same records always give the same result, so after a late receipt the result is built again.
 */
export function buildResult(records: ResultRecords): RunResult {
  const { ending, decisions, tab } = records;
  const receipts = new Map(records.receipts.map((receipt) => [keyOf(receipt), receipt]));
  const receiptOf = ({ agent, callId }: DecisionRecord) =>
    receipts.get(keyOf({ instance: agent.instance, callId }));
  const { phase, answer = '', detail = '' } = ending;
  const stopReason = effectiveStopReason(ending.stopReason, decisions, receiptOf);
  const stoppedAt = decisions.find(
    ({ agent, callId }) => agent.instance === ending.instance && callId === ending.callId,
  );
  const stopped = outcomeOf(stopReason).status === 'stopped';
  const rawAction = stopReason.startsWith(NO_VALID_ACTION) ? stoppedAt?.rawText : undefined;
  const action = stopped ? (stoppedAt?.executedAction ?? stoppedAt?.action) : undefined;
  return {
    status: outcomeOf(stopReason).status,
    stopReason,
    ...omitUndefined({ phase }),
    answer,
    usage: tab?.runUsage ?? NO_USAGE,
    trace: decisions.flatMap((decision) => traceRow(decision, receiptOf(decision), stopReason)),
    history: decisions.flatMap((decision) =>
      historyEntry(decision, receiptOf(decision), stopped && decision === stoppedAt),
    ),
    ...omitUndefined({ rawAction, action }),
    detail: detail || stopSentence(stopReason, action),
    workerDetail: detail,
    unverified: ending.unverified && !agreesWithTab(records),
  };
}

/**
 * Builds the result of an ended run again, after a late receipt or observation or after the content of agents was
 * deleted. The digests of the arguments are those of the `former` result, because the arguments may be deleted (SUP-4).
 */
export function rebuildResult(records: ResultRecords, former: RunResult): RunResult {
  const hashes = new Map(former.trace.map((row) => [traceKeyOf(row), row.argsHash]));
  const result = buildResult(records);
  const trace = result.trace.map((row) => ({
    ...row,
    ...omitUndefined({ argsHash: hashes.get(traceKeyOf(row)) }),
  }));
  return { ...result, trace };
}

/**
 * Returns the stop reason of the run: `nothing_done` instead of `success` when an action with an effect was refused and
 * no such action took effect or is pending.
 */
function effectiveStopReason(
  stopReason: string,
  decisions: readonly DecisionRecord[],
  receiptOf: (decision: DecisionRecord) => ReceiptRecord | undefined,
): string {
  if (stopReason !== 'success') return stopReason;
  const effects = decisions.filter(({ hasEffect }) => hasEffect);
  const counted = countEffects(
    effects.map((decision) => {
      const { executedAction, handoff } = decision;
      const receipt = receiptOf(decision);
      return {
        isTool: decision.action?.kind === 'tool',
        isApproved: executedAction !== undefined,
        stopReason: decision.stopReason,
        child: handoff && (handoff.kind === 'made' ? 'made' : 'none'),
        hasEnded: true,
        status: receipt?.status,
        outcome: receipt?.outcome,
      };
    }),
  );
  return isNothingDone(counted) ? 'nothing_done' : stopReason;
}

/** Returns whether the meter recorded the model failure that the worker reports; false without a closed tab. */
function agreesWithTab({ ending, tab }: ResultRecords): boolean {
  return tab?.failures.some(({ stopReason }) => stopReason === ending.stopReason) ?? false;
}

/**
 * Returns one row for a valid action and no row for an invalid proposal, whose text the result may contain as
 * `rawAction`.
 */
function traceRow(
  decision: DecisionRecord,
  receipt: ReceiptRecord | undefined,
  runStopReason: string,
): TraceRow[] {
  const { step, verdict, agent, callId, human } = decision;
  const shown = decision.executedAction ?? decision.action;
  if (shown === undefined) return [];
  const failure = failureOf(decision, receipt, runStopReason);
  return [
    {
      step,
      tool: actionName(shown),
      ...(isCall(shown) && { argsHash: argsHash(shown.args) }),
      decision: verdict,
      executedFrom: decision.executedFrom ?? 'original',
      ok: failure === undefined,
      ...omitUndefined({ stopReason: failure }),
      ...(human !== undefined && { humanApproved: human.approved }),
      riskScore: decision.risk,
      ...(receipt?.outcome !== undefined && { outcome: receipt.outcome }),
      agent,
      callId,
    },
  ];
}

/** Why a step failed; undefined when it succeeded. */
function failureOf(
  decision: DecisionRecord,
  receipt: ReceiptRecord | undefined,
  runStopReason: string,
): string | undefined {
  const { stopReason, executedAction, handoff } = decision;
  if (stopReason !== undefined) return stopReason;
  // A step that was not executed has the stop reason of the run, but no step fails with `success`.
  const notExecuted = runStopReason === 'success' ? 'cancelled' : runStopReason;
  if (executedAction === undefined) return notExecuted;
  if (handoff !== undefined) return handoffFailure(handoff);
  const { kind } = executedAction;
  if (kind === 'final' || kind === 'client_tool' || receipt?.status === 'ok') return undefined;
  return receipt?.stopReason ?? notExecuted;
}

/**
 * Returns one entry for an approved action with an observation, including failed calls and refused delegations, but
 * none for the call that stopped the run: the result contains it as `action`.
 */
function historyEntry(
  decision: DecisionRecord,
  receipt: ReceiptRecord | undefined,
  isStop: boolean,
): HistoryEntry[] {
  const { action, executedAction, revisedAction, human } = decision;
  if (action === undefined || executedAction === undefined || isStop) return [];
  const observationJson = observationOf(decision, executedAction, receipt);
  if (observationJson === undefined) return [];
  return [
    {
      step: decision.step,
      action,
      decision: decision.verdict,
      reason: decision.reason,
      ...omitUndefined({ revisedAction }),
      executedAction,
      executedFrom: decision.executedFrom ?? 'original',
      observationJson,
      ...omitUndefined({ humanApproval: human }),
      agent: decision.agent,
      callId: decision.callId,
    },
  ];
}

/** The observation of an approved action; undefined when there is none. */
function observationOf(
  { handoff }: DecisionRecord,
  action: RecordedAction,
  receipt: ReceiptRecord | undefined,
): string | undefined {
  if (action.kind === 'final') return FINAL_OBSERVATION;
  if (action.kind === 'delegation') return handoff && handoffObservation(handoff);
  // The program of an external agent executes the tool, and no receipt proves the execution (AP-5).
  if (action.kind === 'client_tool') return '';
  const executed = receipt?.status === 'ok' || receipt?.status === 'error';
  return executed ? (receipt.observation ?? '') : undefined;
}

function keyOf(call: { readonly instance: string; readonly callId: string }): string {
  return `${call.instance}/${call.callId}`;
}

function traceKeyOf({ agent, callId }: TraceRow): string {
  return keyOf({ instance: agent.instance, callId });
}
