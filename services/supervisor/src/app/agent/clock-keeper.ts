import type { Claim } from '@writ/store';
import { cutClocks } from '../../store/agent/agents.ts';
import type { SupervisorStore } from '../../store/supervisor-store.ts';

/**
 * Holds the claim `clocks` while a supervisor runs. If no replica holds it when this one starts, this one assumes that
 * no supervisor was running; time without a supervisor is not active time, so all clocks stop at the last activity of
 * their agents (EM-1). After the holder has ended, another replica acquires the claim in its next sweep.
 */
export class ClockKeeper {
  readonly #store: SupervisorStore;
  #claim: Claim | undefined;

  constructor(store: SupervisorStore) {
    this.#store = store;
  }

  /** Stops all running clocks at the last activity of their agents, unless another supervisor is running. */
  async start(): Promise<void> {
    if (await this.#take()) await this.#store.transaction(cutClocks, { background: true });
  }

  /** Acquires the claim of a replica that has ended; called at an interval. */
  async stayOn(): Promise<void> {
    if (this.#claim?.isHeld() !== true) await this.#take();
  }

  async #take(): Promise<boolean> {
    // A claim is lost with its connection.
    await this.#claim?.release();
    this.#claim = await this.#store.replicas.claim('clocks');
    return this.#claim !== undefined;
  }
}
