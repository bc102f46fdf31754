import type { Claim } from '@writ/store';
import { cutClocks } from '../../store/agent/agents.ts';
import type { SupervisorStore } from '../../store/supervisor-store.ts';

/**
 * Holds the claim `clocks` while a supervisor runs. If a replica acquires the claim when it starts, no other supervisor
 * is running. Time without a supervisor is not active time, so the replica then stops all clocks at the last activity
 * of their agents (EM-1). When the holder ends, another replica acquires the claim in its next sweep, without stopping
 * the clocks.
 */
export class ClockKeeper {
  readonly #store: SupervisorStore;
  #claim: Claim | undefined;

  constructor(store: SupervisorStore) {
    this.#store = store;
  }

  /** Stops all running clocks at the last activity of their agents, unless another supervisor is running. */
  async start(): Promise<void> {
    if (await this.#acquire()) await this.#store.transaction(cutClocks, { background: true });
  }

  /** Acquires the claim of a replica that has ended; called at an interval. */
  async takeOver(): Promise<void> {
    if (this.#claim?.isHeld() !== true) await this.#acquire();
  }

  async #acquire(): Promise<boolean> {
    // Releases a claim that was lost with its database connection.
    await this.#claim?.release();
    this.#claim = await this.#store.replicas.claim('clocks');
    return this.#claim !== undefined;
  }
}
