import { type AgentKey, agentKeyText, ByteCache } from '@writ/kernel';

/**
 * Maximum memory, bytes. A limit is necessary, because an agent is not removed in this process when another replica
 * handles its end.
 */
const MAX_BYTES = 1_000_000;

/** How long the clients of agents wait before they disconnect, as seen in this process. */
export class DisconnectTimes {
  readonly #byAgent = new ByteCache<number>({ name: 'client_waits', maxBytes: MAX_BYTES });

  /** Records that a client disconnected after it had waited this long, in milliseconds. */
  record(agent: AgentKey, waitedMs: number): void {
    const key = agentKeyText(agent);
    this.#byAgent.set(key, Math.min(waitedMs, this.#byAgent.get(key) ?? waitedMs));
  }

  /** The shortest wait, in milliseconds, after which a client of the agent disconnected; undefined when none did. */
  shortestOf(agent: AgentKey): number | undefined {
    return this.#byAgent.get(agentKeyText(agent));
  }

  /** Forgets an agent that has ended. */
  forget(agent: AgentKey): void {
    this.#byAgent.delete(agentKeyText(agent));
  }
}
