import type { HumanAnswer } from '../../domain/result/run-result.ts';
import { humanAnswerOf, loadApproval } from '../../store/approval/approvals.ts';
import { callKeyOf, type DecisionRow, saveDecision } from '../../store/review/decisions.ts';
import { findReceipt } from '../../store/review/receipts.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';
import { type DecisionMessage, decisionMessage } from '../messages/decision.ts';
import { type Acting, isAlive } from './acting.ts';
import { ordersCall, signWrit, type WritDesk, writColumns } from './sign-writ.ts';

/**
 * A decision as it stands now. An approved call that nobody has a receipt of gets a fresh writ, for
 * exactly what was approved; each one is recorded (SV-6). Execution stays unique by call_id.
 */
export async function standingDecision(
  trx: SupervisorTransaction,
  desk: WritDesk,
  acting: Acting,
  row: DecisionRow,
): Promise<DecisionMessage> {
  const human = await humanAnswerTo(trx, row);
  if (!(await mayExecute(trx, acting, row))) return decisionMessage(row, { human });
  const writ = await signWrit(desk, acting, row);
  await saveDecision(trx, callKeyOf(row), writColumns(row, writ));
  return decisionMessage(row, { human, writ });
}

/** What a person said about a decision; undefined when nobody was asked or nobody has answered. */
async function humanAnswerTo(
  trx: SupervisorTransaction,
  { tenant, approval_id }: DecisionRow,
): Promise<HumanAnswer | undefined> {
  if (approval_id === null) return undefined;
  return humanAnswerOf(await loadApproval(trx, tenant, approval_id));
}

async function mayExecute(
  trx: SupervisorTransaction,
  acting: Acting,
  row: DecisionRow,
): Promise<boolean> {
  if (!ordersCall(row) || !isAlive(acting) || acting.run.state === 'PARKED') return false;
  return (await findReceipt(trx, callKeyOf(row))) === undefined;
}
