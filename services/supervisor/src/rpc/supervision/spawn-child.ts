import type { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { omitUndefined } from '@writ/kernel';
import type { Handler } from '@writ/rpc';
import { callingAgent } from '../../app/agent/admit-agent.ts';
import { type ReviewedSpawn, spawnChild as spawn } from '../../app/agent/spawn-child.ts';
import { readCarriedReceipts } from '../../app/review/carried-receipts.ts';
import type { SupervisorContext } from '../../context.ts';
import { delegationFrom } from '../../wire/proposal.ts';
import { agentRefOf, supervisionMessage } from '../../wire/supervision.ts';

/**
 * SpawnChild: reviews a delegation like any other action and, when it is approved, waits until the child is set up. A
 * repeated call returns the same decision and the same child (SV-1, SUP-9).
 */
export function spawnChild(
  context: SupervisorContext,
): Handler<typeof SupervisionService.method.spawnChild> {
  return async (request, call) => {
    const startedAt = performance.now();
    const proposal = delegationFrom(request);
    const recordCarried = await readCarriedReceipts(context, callingAgent(call), request);
    const review = { call, proposal, findTool: () => undefined, recordCarried, startedAt };
    return response(await spawn(context, request, review));
  };
}

function response({ decision, slotRefusal, child }: ReviewedSpawn) {
  if (child === undefined) return { decision, ...omitUndefined({ slotRefusal }) };
  const { run, agent, paused } = child;
  return {
    decision,
    child: agentRefOf(agent),
    supervision: supervisionMessage(run, agent),
    ...(paused && { paused }),
  };
}
