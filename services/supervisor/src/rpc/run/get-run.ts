import type { RunService } from '@writ/contracts/writ/run/v1/run_service_pb';
import type { RunKey } from '@writ/kernel';
import { type Handler, requirePerson } from '@writ/rpc';
import type { SupervisorContext } from '../../context.ts';
import { operatorWait } from '../../domain/slot/wait.ts';
import { agentsOf } from '../../store/agent/agents.ts';
import { loadRun } from '../../store/run/runs.ts';
import { lastSequence } from '../../store/run/timeline.ts';
import { runMessage } from '../../wire/run.ts';

/** GetRun: reads a run of the caller's tenant; another tenant's is NOT_FOUND (SYS-6). */
export function getRun(context: SupervisorContext): Handler<typeof RunService.method.getRun> {
  return async (request, call) => {
    const { tenant } = requirePerson(call);
    const key = { tenant, runId: request.runId };
    const run = await loadRun(context.store.db, key);
    const waitingDetail = run.ended_at === null ? await operatorWaitOf(context, key) : undefined;
    const sequence = await lastSequence(context.store.db, key);
    return { run: runMessage(run, { lastSequence: sequence, waitingDetail }) };
  };
}

/** Why the run waits for an operator; undefined when it does not. */
async function operatorWaitOf(
  { store }: SupervisorContext,
  key: RunKey,
): Promise<string | undefined> {
  for (const agent of await agentsOf(store.db, key)) {
    const wait = agent.ended_at === null ? operatorWait(agent) : undefined;
    if (wait !== undefined) return wait;
  }
  return undefined;
}
