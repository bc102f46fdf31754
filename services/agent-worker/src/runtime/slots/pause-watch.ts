import { setTimeout as delay } from 'node:timers/promises';
import type { AgentKey } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import type { SpawnBudgetPeer } from '../../peers/spawn-budget.ts';

/** Dependencies of {@link PauseWatch}. */
interface PauseWatchParts {
  readonly peer: Pick<SpawnBudgetPeer, 'watchPauses'>;
  readonly log: Logger;
  /** Delay before an ended stream is reopened, in milliseconds. */
  readonly retryMs: number;
  /** Called for an agent whose slot changed. */
  readonly slotChanged: (agent: AgentKey) => void;
}

/**
 * Watches for pauses and resumptions, to detect them before the next renewal (SB-4). Best effort:
 * every change is confirmed by a renewal.
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

  /** Adds a tenant to the watch. */
  add(tenant: string): void {
    if (this.#tenants.has(tenant) || this.#stopping.signal.aborted) return;
    this.#tenants.add(tenant);
    this.#restart.abort();
    this.#loop ??= this.#run();
  }

  /** Stops the watch. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#loop;
  }

  async #run(): Promise<void> {
    const { peer, log, retryMs, slotChanged } = this.#parts;
    while (!this.#stopping.signal.aborted) {
      this.#restart = new AbortController();
      const signal = AbortSignal.any([this.#stopping.signal, this.#restart.signal]);
      try {
        for await (const agent of peer.watchPauses([...this.#tenants], { signal }))
          slotChanged(agent);
        await delay(retryMs, undefined, { signal });
      } catch (error) {
        if (signal.aborted) continue;
        log.debug({ err: error }, 'pause watch failed');
        await delay(retryMs, undefined, { signal }).catch(() => undefined);
      }
    }
  }
}
