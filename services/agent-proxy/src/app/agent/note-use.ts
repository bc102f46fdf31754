import type { ProxyContext } from '../../context.ts';
import { type AgentRow, keyOf, saveAgent } from '../../store/agents.ts';

/**
 * Records that an agent is in use. The time is updated at most once per quarter of the idle timeout, so that most
 * requests cause no additional commit (AP-1).
 * @returns the agent row after the update
 */
export async function noteUse(
  { store, clock }: Pick<ProxyContext, 'store' | 'clock'>,
  agent: AgentRow,
): Promise<AgentRow> {
  const now = clock.now();
  if (now.getTime() - agent.used_at.getTime() < agent.idle_ms / 4) return agent;
  const key = keyOf(agent);
  await store.transaction((trx) => saveAgent(trx, key, { used_at: now }), { run: key });
  return { ...agent, used_at: now };
}
