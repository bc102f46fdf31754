import type { Claim } from '@writ/store';
import { cutClocks } from '../../store/agent/agents.ts';
import type { SupervisorStore } from '../../store/supervisor-store.ts';

/**
 * Knows whether active time was kept: not while no supervisor was there (EM-1). One that starts beside
 * another cuts nothing, for the agents' time went on.
 */
export class ClockKeeper {
  readonly #store: SupervisorStore;
  #claim: Claim | undefined;

  constructor(store: SupervisorStore) {
    this.#store = store;
  }

  /** Cuts the clocks that nobody kept, unless another supervisor did. */
  async start(): Promise<void> {
    if (await this.#take()) await this.#store.transaction(cutClocks, { background: true });
  }

  /** Takes the place of one that has ended; asked for now and then. */
  async stayOn(): Promise<void> {
    if (this.#claim?.isHeld() !== true) await this.#take();
  }

  async #take(): Promise<boolean> {
    // What went with its connection is claimed anew.
    await this.#claim?.release();
    this.#claim = await this.#store.replicas.claim('clocks');
    return this.#claim !== undefined;
  }
}
