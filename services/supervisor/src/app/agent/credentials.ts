import { mintAgentCredentials } from '@writ/identity';
import type { SupervisorContext } from '../../context.ts';
import type { Credentials } from '../../peers/agent-worker.ts';
import type { AgentRow } from '../../store/agent/agents.ts';
import type { RunRow } from '../../store/run/runs.ts';
import { agentRefOf, parentRefOf, priorityMessage } from '../../wire/supervision.ts';

/** Returns new tokens for an agent, one token for each audience (SUP-9). */
export async function credentialsFor(
  { signer, config }: Pick<SupervisorContext, 'signer' | 'config'>,
  run: RunRow,
  agent: AgentRow,
): Promise<Credentials> {
  const parent = parentRefOf(agent);
  return await mintAgentCredentials(
    signer,
    {
      tenant: run.tenant,
      runId: run.run_id,
      sessionId: run.session_id,
      agent: agentRefOf(agent),
      ...(parent && { parent }),
      depth: agent.depth,
      priority: priorityMessage(agent.priority),
      models: JSON.parse(agent.models) as string[],
      tools: JSON.parse(agent.tools) as string[],
    },
    config.agentTokenTtlMs,
  );
}
