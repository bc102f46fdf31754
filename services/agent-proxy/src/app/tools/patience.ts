import { type AgentKey, agentKeyText, ByteCache } from '@writ/kernel';

/** Maximum memory, bytes: agents whose end another replica handles are not forgotten here. */
const MAX_BYTES = 1_000_000;

/** How long the clients of agents wait before they leave, as seen in this process. */
export class Patience {
  readonly #byAgent = new ByteCache<number>({ name: 'patience', maxBytes: MAX_BYTES });

  /** Notes that a client left after it had waited this long, in milliseconds. */
  left(agent: AgentKey, waitedMs: number): void {
    const key = agentKeyText(agent);
    this.#byAgent.set(key, Math.min(waitedMs, this.#byAgent.get(key) ?? waitedMs));
  }

  /** The shortest wait that a client of the agent left; undefined when none left. */
  of(agent: AgentKey): number | undefined {
    return this.#byAgent.get(agentKeyText(agent));
  }

  /** Forgets an agent that has ended. */
  forget(agent: AgentKey): void {
    this.#byAgent.delete(agentKeyText(agent));
  }
}
