import { admitEpoch } from '@writ/identity';
import type { AgentKey } from '@writ/kernel';
import { type CallContext, requireAgent } from '@writ/rpc';
import { type AgentRow, loadAgent, saveAgent } from '../../store/agent/agents.ts';
import type { SupervisorTransaction } from '../../store/supervisor-store.ts';

/** The agent that a worker calls for, by its verified token. */
export function callingAgent(call: CallContext): AgentKey {
  const { tenant, runId, agent } = requireAgent(call);
  return { tenant, runId, instance: agent.instance };
}

/**
 * The agent that a worker calls for, once its lease's epoch is admitted (RT-2).
 * @throws PreconditionError STALE_EPOCH, NotFoundError AGENT_NOT_FOUND
 */
export async function admitAgent(trx: SupervisorTransaction, call: CallContext): Promise<AgentRow> {
  const key = callingAgent(call);
  const agent = await loadAgent(trx, key);
  const epoch = admitEpoch(agent.epoch, call.caller.epoch ?? 0n);
  if (epoch !== agent.epoch) await saveAgent(trx, key, { epoch });
  return { ...agent, epoch };
}
