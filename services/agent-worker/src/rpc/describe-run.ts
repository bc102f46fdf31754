import {
  AgentState,
  type AgentWorkerService,
} from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { assertServesTenant } from '@writ/identity';
import type { Handler } from '@writ/rpc';
import type { Dependencies } from '../app/agents/dependencies.ts';
import { shownState } from '../domain/agent/state.ts';
import { type AgentRow, agentsOf, statusOf } from '../store/agents.ts';
import { keyOf } from '../store/keys.ts';

/** Describes the agents of a run (AG-7). */
export function describeRun({
  store,
  agents,
}: Dependencies): Handler<typeof AgentWorkerService.method.describeRun> {
  return async ({ tenant, runId }, call) => {
    assertServesTenant(call.caller, tenant);
    const rows = await agentsOf(store.db, { tenant, runId });
    return { agents: rows.map((row) => description(row, agents)) };
  };
}

function description(row: AgentRow, agents: Dependencies['agents']) {
  const stored = statusOf(row);
  // Between two commits, only the process that runs the agent knows its status.
  const status = stored.state === 'RUNNING' ? (agents.statusOf(keyOf(row)) ?? stored) : stored;
  return {
    agent: { name: row.name, instance: row.instance },
    state: AgentState[shownState(status)],
    epoch: row.epoch,
    journalLength: BigInt(row.journal_length),
    waitingFor: [...status.waitingFor],
    stopReason: status.stopReason ?? '',
  };
}
