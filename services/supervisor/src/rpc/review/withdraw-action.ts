import type { ReviewService } from '@writ/contracts/writ/review/v1/review_service_pb';
import type { Handler } from '@writ/rpc';
import { withdrawAction as withdraw } from '../../app/approval/withdraw-action.ts';
import type { SupervisorContext } from '../../context.ts';

/** WithdrawAction: withdraws a proposal that waits for a person (AP-4). */
export function withdrawAction(
  context: SupervisorContext,
): Handler<typeof ReviewService.method.withdrawAction> {
  return async ({ callId }, call) => ({ withdrawn: await withdraw(context, call, callId) });
}
