import type { Receipt } from '../../domain/facts/receipt.ts';
import { actionFrom } from '../../domain/result/recorded-action.ts';
import { suspendAgent } from '../../store/agent/suspension.ts';
import type { DecisionRow } from '../../store/review/decisions.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import type { Acting } from '../review/review-subject.ts';
import { type ApprovalDesk, openApproval } from './open-approval.ts';

/**
 * Asks a person what became of a call whose outcome nobody knows, while its agent waits: it is never
 * tried again by itself (TG-5).
 */
export async function openResolve(
  trx: SupervisorTransaction,
  desk: ApprovalDesk,
  acting: Acting,
  decision: DecisionRow,
  receipt: Receipt,
  at: Date,
): Promise<void> {
  const action = actionFrom(decision.executed_action);
  if (action === undefined) return;
  await openApproval(
    trx,
    desk,
    acting,
    {
      kind: 'resolve',
      callId: decision.call_id,
      step: decision.step,
      action,
      reason: receipt.stopReason,
      ruleId: decision.rule_id,
      risk: decision.risk,
      policyVersion: decision.policy_version,
    },
    at,
  );
  await suspendAgent(trx, acting.key, at);
}
