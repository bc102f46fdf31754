import type { AgentWorkerService } from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { assertServesTenant } from '@writ/identity';
import { HistoryRetention, InvalidRequestError, isStopReason } from '@writ/kernel';
import type { Handler } from '@writ/rpc';
import { awaitEnd } from '../app/agents/await-end.ts';
import { cancelAgents } from '../app/agents/cancel-agents.ts';
import type { Dependencies } from '../app/agents/dependencies.ts';
import { readWorkerEvent } from '../events.ts';
import { eventMessages } from '../wire/carried-event.ts';
import { retentionFrom } from '../wire/supervision.ts';

/**
 * Ends the agents of a run, or one of them (SUP-8). With `await_end`, does not end the agent: waits for a limited time
 * until the agent has ended, and returns whether it has ended.
 */
export function cancel(
  dependencies: Dependencies,
): Handler<typeof AgentWorkerService.method.cancel> {
  return async (request, call) => {
    const { tenant, runId, requestId, agentInstance, stopReason, answer } = request;
    assertServesTenant(call.caller, tenant);
    if (!isStopReason(stopReason)) {
      const message = `stop_reason "${stopReason}" is not a known stop reason.`;
      throw new InvalidRequestError('INVALID_STOP_REASON', message, { field: 'stop_reason' });
    }
    if (request.awaitEnd) {
      const last = await awaitEnd(dependencies, { tenant, runId, instance: agentInstance });
      return { hasEnded: last !== undefined, events: eventMessages(last ?? []) };
    }
    const { ended, events } = await cancelAgents(dependencies, {
      tenant,
      run_id: runId,
      request_id: requestId,
      instance: agentInstance,
      stop_reason: stopReason,
      retention: retentionFrom(request.retention) ?? HistoryRetention.PERMANENT,
      cancelled_at: dependencies.clock.now(),
      recorded: request.recordedEvents.flatMap((payload) => readWorkerEvent(payload) ?? []),
      ...(answer !== '' && { answer }),
    });
    return { ended, events: eventMessages(events) };
  };
}
