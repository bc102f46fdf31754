import type { JsonObject } from '@writ/kernel';
import type { SupervisorContext } from '../../context.ts';
import {
  type Evidence,
  MAX_EVIDENCE_STEPS,
  type StepRecord,
  selectEvidence,
} from '../../domain/approval/evidence.ts';
import { actionFrom } from '../../domain/result/recorded-action.ts';
import type { ApprovalRow } from '../../store/approval/approvals.ts';
import { callKeyOf, loadDecision } from '../../store/review/decisions.ts';
import { stepsBefore } from '../../store/review/decisions-with-receipts.ts';
import { loadRun } from '../../store/run/runs.ts';

/**
 * Maximum number of rows that are read: a call has a second row if its unknown outcome was resolved, and two more rows
 * show whether there are earlier steps.
 */
const ROWS = 2 * MAX_EVIDENCE_STEPS + 2;

/**
 * Reads the evidence that the policy shows to the approvers of an action: the goal of the run, and the facts and steps
 * before the action (SV-5). Evidence is read from the records of the run and not stored separately, so that it is
 * deleted with them (SUP-4).
 */
export async function readEvidence(
  { store, policy }: SupervisorContext,
  row: ApprovalRow,
): Promise<Evidence> {
  const key = callKeyOf(row);
  const run = await loadRun(store.db, key);
  const decision = await loadDecision(store.db, key);
  const found = await stepsBefore(store.db, key, decision.sequence, ROWS);
  const latest = new Map<string, (typeof found)[number]>();
  for (const step of found) {
    const id = `${step.instance}/${step.call_id}`;
    if (!latest.has(id)) latest.set(id, step);
  }
  const steps = [...latest.values()].flatMap((step): StepRecord[] => {
    const action = actionFrom(step.executed_action) ?? actionFrom(step.action);
    if (action === undefined) return [];
    return [
      {
        agent: { name: step.name, instance: step.instance },
        callId: step.call_id,
        step: step.step,
        action,
        verdict: step.verdict,
        reason: step.reason,
        stopReason: step.stop_reason ?? '',
        outcome: step.outcome ?? '',
        observation: step.observation ?? '',
      },
    ];
  });
  return selectEvidence(policy, {
    goal: run.goal,
    facts: JSON.parse(decision.facts_before ?? '{}') as JsonObject,
    steps: steps.slice(0, MAX_EVIDENCE_STEPS).reverse(),
    hasMore: steps.length > MAX_EVIDENCE_STEPS || found.length === ROWS,
  });
}
