import type { ProxyContext } from '../../context.ts';
import { type AgentRow, keyOf } from '../../store/agents.ts';
import { noteUse } from './note-use.ts';

/** Number of agents that the sweep processes concurrently. */
const AT_A_TIME = 64;

/**
 * Sweep: keeps agents with requests in progress active. A long request needs a valid slot lease until it ends: when the
 * lease expires, a sub-agent loses its slot and the root keeps its slot without a lease (SB-4). The recorded use keeps
 * other replicas from ending the agent as idle (AP-1).
 */
export async function keepActive(context: ProxyContext): Promise<void> {
  const agents = context.open.agents();
  for (let begin = 0; begin < agents.length; begin += AT_A_TIME) {
    const batch = agents.slice(begin, begin + AT_A_TIME);
    await Promise.all(batch.map((agent) => keep(context, agent)));
  }
}

async function keep(context: ProxyContext, agent: AgentRow): Promise<void> {
  const { open, slots, telemetry } = context;
  const key = keyOf(agent);
  try {
    open.noted(await noteUse(context, agent));
    // A request that waits for a person needs no slot.
    if (open.hasActive(key)) await slots.keep(key);
  } catch (error) {
    // The agent has ended or was paused, which its next call reports, or a service is unreachable.
    telemetry.log.debug({ err: error, run_id: key.runId }, 'agent with a request not kept active');
  }
}
