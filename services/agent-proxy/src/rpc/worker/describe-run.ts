import {
  AgentState,
  type AgentWorkerService,
} from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { assertServesTenant } from '@writ/identity';
import { isStopReason, outcomeOf } from '@writ/kernel';
import type { Handler } from '@writ/rpc';
import { describeRun as describe } from '../../app/agent/read-agents.ts';
import type { ProxyContext } from '../../context.ts';

function stateAfter(stopReason: string): AgentState {
  return isStopReason(stopReason) ? AgentState[outcomeOf(stopReason).state] : AgentState.ERROR;
}

/** Describes the external agents of a run (AG-7). */
export function describeRun(
  context: ProxyContext,
): Handler<typeof AgentWorkerService.method.describeRun> {
  return async ({ tenant, runId }, { caller }) => {
    assertServesTenant(caller, tenant);
    const agents = await describe(context, { tenant, runId });
    return {
      agents: agents.map(({ name, instance, ended_at: endedAt, stop_reason: stopReason }) => ({
        agent: { name, instance },
        state: endedAt === null ? AgentState.RUNNING : stateAfter(stopReason ?? ''),
        epoch: 1n,
        stopReason: stopReason ?? '',
      })),
    };
  };
}
