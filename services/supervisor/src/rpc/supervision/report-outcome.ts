import type { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import type { Phase } from '@writ/kernel';
import type { Handler } from '@writ/rpc';
import { admitAgent, callingAgent } from '../../app/agent/admit-agent.ts';
import { readCarriedReceipts } from '../../app/review/carried-receipts.ts';
import type { SupervisorContext } from '../../context.ts';
import { activeMsAt } from '../../domain/clock/active-clock.ts';
import { budgetFromJson, manifestFromJson } from '../../domain/manifest/manifest-json.ts';
import { checkOutcome, type OutcomeEvidence } from '../../domain/run/check-outcome.ts';
import { type AgentRow, clockOf, keyOf, loadAgent } from '../../store/agent/agents.ts';
import { deadlineOf } from '../../store/agent/deadline.ts';
import { recordEnding } from '../../store/agent/endings.ts';
import { findDecision } from '../../store/review/decisions.ts';
import { findReceipt } from '../../store/review/receipts.ts';
import { loadRun } from '../../store/run/runs.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';

/**
 * ReportOutcome: how an agent ended that no approved final ended. What the supervisor does not know
 * of is marked as the worker's word; the first ending stands (SV-7, RT-4).
 */
export function reportOutcome(
  context: SupervisorContext,
): Handler<typeof SupervisionService.method.reportOutcome> {
  return async (request, call) => {
    const key = callingAgent(call);
    // Signatures are checked before the transaction, so that nobody waits for them.
    const record = await readCarriedReceipts(context, key, request);
    const { stopReason, callId, detail } = request;
    return await context.store.transaction(async (trx) => {
      const now = context.clock.now();
      const agent = await admitAgent(trx, call);
      await record(trx, now);
      const claim = { stopReason, phase: request.phase as Phase, callId };
      const checked = checkOutcome(claim, await evidence(trx, agent, callId, now));
      await recordEnding(trx, { ...key, stopReason, callId, detail, ...checked }, now);
      const { ending_stop_reason: standing } = await loadAgent(trx, key);
      return { stopReason: standing ?? stopReason };
    });
  };
}

async function evidence(
  trx: SupervisorTransaction,
  agent: AgentRow,
  callId: string,
  now: Date,
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
