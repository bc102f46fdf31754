import { IdleWait } from '@writ/kernel';
import type { WebResponse } from './web.ts';

/** The responses to requests other than RPCs that have not ended; a drain waits for them. */
export class OpenResponses {
  readonly #open = new Set<WebResponse>();
  readonly #idleWait = new IdleWait();

  add(response: WebResponse): void {
    // A closed response emits no further event.
    if (response.closed) return;
    this.#open.add(response);
    response.once('close', () => {
      this.#open.delete(response);
      if (this.#open.size === 0) this.#idleWait.notify();
    });
  }

  /** Resolves when no response is open, or after `limitMs`; never rejects. */
  async idle(limitMs: number): Promise<void> {
    if (this.#open.size > 0) await this.#idleWait.wait(limitMs);
  }
}
