import { type AgentKey, PreconditionError } from '@writ/kernel';

/** Returns the error RUN_ENDED of an agent that has ended; its run may continue. */
export function agentEnded({ runId, instance }: AgentKey, stopReason: string): PreconditionError {
  return new PreconditionError(
    'RUN_ENDED',
    `Agent ${instance} of run ${runId} has ended: ${stopReason}.`,
    { run_id: runId, agent: instance, stop_reason: stopReason },
  );
}
