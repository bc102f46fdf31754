import type { CallContext } from '@writ/rpc';
import { type SupervisorContext, type Tx, transact } from '../../context.ts';
import {
  checkReportedOutcome,
  type OutcomeEvidence,
  type ReportedOutcome,
} from '../../domain/agent/check-reported-outcome.ts';
import { activeMsAt } from '../../domain/clock/active-clock.ts';
import { budgetFromJson, manifestFromJson } from '../../domain/manifest/manifest-json.ts';
import { type AgentRow, clockOf, keyOf, loadAgent } from '../../store/agent/agents.ts';
import { deadlineOf } from '../../store/agent/deadline.ts';
import { recordEnding } from '../../store/agent/endings.ts';
import { findDecision } from '../../store/review/decisions.ts';
import { findReceipt } from '../../store/review/receipts.ts';
import { loadRun } from '../../store/run/runs.ts';
import type { RecordCarried } from '../review/carried-receipts.ts';
import { recordHeldEvents } from '../timeline/carried-events.ts';
import { admitAgent, callingAgent } from './admit-agent.ts';

/** How a worker reports the end of its agent. */
export interface OutcomeReport {
  readonly reported: ReportedOutcome;
  /** Explanation by the worker, one sentence. */
  readonly detail: string;
  readonly recordCarried: RecordCarried;
}

/**
 * Ends the calling agent, unless its ending is already recorded. Returns the recorded stop reason and the approved
 * answer, if any.
 * @throws the errors of admitAgent, checkReportedOutcome and `recordCarried`
 */
export async function reportOutcome(
  context: SupervisorContext,
  { reported, detail, recordCarried }: OutcomeReport,
  call: CallContext,
): Promise<{ readonly stopReason: string; readonly answer: string }> {
  const work = async (tx: Tx) => {
    const { trx, at } = tx;
    const agent = await admitAgent(trx, call);
    await recordCarried(tx);
    await recordHeldEvents(tx, keyOf(agent));
    const { stopReason, callId } = reported;
    const checked = checkReportedOutcome(reported, await evidence(tx, agent, callId));
    await recordEnding(trx, { ...keyOf(agent), stopReason, callId, detail, ...checked }, at);
    const recorded = await loadAgent(trx, keyOf(agent));
    const { ending_stop_reason, ending_answer: answer } = recorded;
    return { stopReason: ending_stop_reason ?? stopReason, answer: answer ?? '' };
  };
  return await transact(context, work, { run: callingAgent(call) });
}

async function evidence(
  { trx, at: now }: Tx,
  agent: AgentRow,
  callId: string,
): Promise<OutcomeEvidence> {
  const key = keyOf(agent);
  const decision = await findDecision(trx, { ...key, callId });
  const receipt = await findReceipt(trx, { ...key, callId });
  const run = await loadRun(trx, key);
  return {
    decision: decision && { stopReason: decision.stop_reason, phase: decision.phase },
    receipt: receipt && { stopReason: receipt.stop_reason },
    steps: agent.steps,
    maxSteps: manifestFromJson(agent.manifest).limits.maxSteps,
    activeMs: activeMsAt(clockOf(agent), now),
    maxActiveMs: budgetFromJson(agent.execution_budget).maxActiveMs,
    now,
    deadlineAt: deadlineOf(run, agent),
  };
}
