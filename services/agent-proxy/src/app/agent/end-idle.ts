import { derivedId, isWritError } from '@writ/kernel';
import type { ProxyContext } from '../../context.ts';
import {
  type AgentRow,
  agentsOf,
  FIRST_UNUSED,
  keyOf,
  UNUSED_PAGE,
  type UnusedPosition,
  unusedAgents,
} from '../../store/agents.ts';
import { hasUndecidedCall } from '../../store/tool-calls.ts';
import { endAgent } from './end-agent.ts';

/**
 * Minimum time since the recorded use of an agent before the sweep examines the agent, ms. An agent with a shorter
 * `idle_timeout` ends only after this time.
 */
const SHORTEST_MS = 1_000;

/**
 * Sweep: ends agents that had no request for their idle timeout, with the stop reason `idle`: the end of a root agent
 * ends its run, that of a sub-agent does not (AP-1, AP-6). Each pass reads the next page, so that a full page of agents
 * with long timeouts does not prevent the examination of later agents.
 */
export class IdleAgents {
  readonly #context: ProxyContext;
  /** The last agent of the latest page. */
  #after: UnusedPosition = FIRST_UNUSED;

  constructor(context: ProxyContext) {
    this.#context = context;
  }

  async end(): Promise<void> {
    const { store, clock } = this.#context;
    const usedBefore = new Date(clock.now().getTime() - SHORTEST_MS);
    const agents = await unusedAgents(store.db, usedBefore, this.#after);
    this.#after = (agents.length < UNUSED_PAGE ? undefined : agents.at(-1)) ?? FIRST_UNUSED;
    for (const agent of agents) await endIfIdle(this.#context, agent);
  }
}

async function endIfIdle(context: ProxyContext, listed: AgentRow): Promise<void> {
  const { store, telemetry } = context;
  const key = keyOf(listed);
  if (!isUnused(context, listed)) return;
  // Earlier agents of the page may have taken seconds to end, so the row is read again: another replica may have
  // recorded a request.
  const agents = await agentsOf(store.db, key);
  const agent = agents.find(({ instance }) => instance === key.instance);
  if (agent === undefined || agent.ended_at !== null || !isUnused(context, agent)) return;
  // Sub-agents end first: an agent with a sub-agent that has not ended is not idle.
  if (agents.some((one) => one.parent_instance === key.instance && one.ended_at === null)) return;
  // An agent that waits for a person is not idle (AP-4).
  if (await hasUndecidedCall(store.db, key)) return;
  const requestId = derivedId('req', key.tenant, key.runId, key.instance, 'idle');
  try {
    await endAgent(context, agent, 'idle', requestId);
  } catch (error) {
    if (isWritError(error) && error.reason === 'RUN_ENDED') return;
    telemetry.log.warn({ err: error, run_id: key.runId }, 'idle agent not reported yet');
  }
}

/** Whether the agent has no request on this replica, and its last recorded request is older than its idle timeout. */
function isUnused({ clock, open }: ProxyContext, agent: AgentRow): boolean {
  const unusedMs = clock.now().getTime() - agent.used_at.getTime();
  // `used_at` can be older than the latest request by up to a quarter of the timeout (noteUse), so a quarter is added.
  return unusedMs >= agent.idle_ms * 1.25 && !open.has(keyOf(agent));
}
