import { derivedId, isWritError } from '@writ/kernel';
import type { ProxyContext } from '../../context.ts';
import { agentsOf, keyOf, unusedAgents } from '../../store/agents.ts';
import { hasUndecidedCall } from '../../store/tool-calls.ts';
import { endAgent } from './end-agent.ts';

/** The shortest idle timeout. */
const SHORTEST_MS = 1_000;

/**
 * Sweep: ends agents without a request for their idle timeout: with `idle` the run of a main agent, or one sub-agent
 * alone (AP-1, AP-6).
 */
export async function endIdle(context: ProxyContext): Promise<void> {
  const { store, clock, open, telemetry } = context;
  const now = clock.now().getTime();
  for (const agent of await unusedAgents(store.db, new Date(now - SHORTEST_MS))) {
    const key = keyOf(agent);
    // The time of the latest request is stored to a quarter of the timeout: a run never ends early.
    if (now - agent.used_at.getTime() < agent.idle_ms * 1.25 || open.has(key)) continue;
    // A sub-agent ends first, and the use of it is one of the agents above it.
    const others = await agentsOf(store.db, key);
    if (others.some((one) => one.parent_instance === key.instance && one.ended_at === null))
      continue;
    // What a person has not decided is no idleness of the program (AP-4).
    if (await hasUndecidedCall(store.db, key)) continue;
    const requestId = derivedId('req', key.tenant, key.runId, key.instance, 'idle');
    try {
      await endAgent(context, agent, 'idle', requestId);
    } catch (error) {
      if (isWritError(error) && error.reason === 'RUN_ENDED') continue;
      telemetry.log.warn({ err: error, run_id: key.runId }, 'idle agent not reported yet');
    }
  }
}
