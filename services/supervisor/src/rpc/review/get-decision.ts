import type { ReviewService } from '@writ/contracts/writ/review/v1/review_service_pb';
import type { Handler } from '@writ/rpc';
import { readOwnDecision } from '../../app/review/current-decision.ts';
import type { SupervisorContext } from '../../context.ts';

/**
 * GetDecision: the current state of a decision, with a new writ for an approved call, which is executed only once.
 * Rejects an agent that has ended, is paused or is halted (SV-6, SB-4).
 */
export function getDecision(
  context: SupervisorContext,
): Handler<typeof ReviewService.method.getDecision> {
  return async ({ callId }, call) => ({ decision: await readOwnDecision(context, call, callId) });
}
