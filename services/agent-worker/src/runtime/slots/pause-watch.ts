import { setTimeout as delay } from 'node:timers/promises';
import type { Logger } from '@writ/telemetry';
import type { SpawnBudgetPeer } from '../../peers/spawn-budget.ts';
import type { AgentKey } from '../../store/keys.ts';

/** What the watch works with. */
interface PauseWatchParts {
  readonly peer: Pick<SpawnBudgetPeer, 'watchPauses'>;
  readonly log: Logger;
  /** Wait before a stream that ended is opened again, ms. */
  readonly retryMs: number;
  /** Told of an agent whose slot moved. */
  readonly moved: (agent: AgentKey) => void;
}

/**
 * Listens for pauses and resumptions, so that they are known sooner than with the next renewal (SB-4).
 * A hint: nothing depends on it, and what it says is asked for again.
 */
export class PauseWatch {
  readonly #parts: PauseWatchParts;
  readonly #tenants = new Set<string>();
  readonly #stopping = new AbortController();
  #restart = new AbortController();
  #loop: Promise<void> | undefined;

  constructor(parts: PauseWatchParts) {
    this.#parts = parts;
  }

  /** Watches a tenant, too, from now on. */
  add(tenant: string): void {
    if (this.#tenants.has(tenant) || this.#stopping.signal.aborted) return;
    this.#tenants.add(tenant);
    this.#restart.abort();
    this.#loop ??= this.#run();
  }

  /** Watches nothing more. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
  }

  async #run(): Promise<void> {
    const { peer, log, retryMs, moved } = this.#parts;
    while (!this.#stopping.signal.aborted) {
      this.#restart = new AbortController();
      const signal = AbortSignal.any([this.#stopping.signal, this.#restart.signal]);
      try {
        for await (const agent of peer.watchPauses([...this.#tenants], { signal })) moved(agent);
        await delay(retryMs, undefined, { signal });
      } catch (error) {
        if (signal.aborted) continue;
        log.debug({ err: error }, 'pauses are not watched');
        await delay(retryMs, undefined, { signal }).catch(() => undefined);
      }
    }
  }
}
