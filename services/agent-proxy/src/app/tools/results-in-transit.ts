import { type AgentKey, agentKeyText } from '@writ/kernel';
import { type ToolCallRow, toolCallKeyOf } from '../../store/tool-calls.ts';

/** Longest wait of an equal call for a response that is being sent, ms. */
const SENDING_MS = 1_000;

/**
 * Results that are being sent to clients. An equal call waits until the result was sent, at most {@link SENDING_MS}: if
 * the client has received the result, the equal call is a new call and not a repeat.
 */
export class ResultsInTransit {
  readonly #sending = new Map<string, Promise<void>>();

  /**
   * Registers a result that is about to be sent. Call the returned function when sending has ended, even if it has
   * failed.
   */
  begin(row: ToolCallRow): () => void {
    const key = keyOf(toolCallKeyOf(row), row.digest);
    const { promise, resolve } = Promise.withResolvers<void>();
    const timer = setTimeout(resolve, SENDING_MS);
    this.#sending.set(key, promise);
    void promise.then(() => {
      clearTimeout(timer);
      if (this.#sending.get(key) === promise) this.#sending.delete(key);
    });
    return resolve;
  }

  /** Waits until the result of an equal call, if any, was sent. */
  async waitUntilSent(agent: AgentKey, digest: string): Promise<void> {
    await this.#sending.get(keyOf(agent, digest));
  }
}

function keyOf(agent: AgentKey, digest: string): string {
  return `${agentKeyText(agent)}/${digest}`;
}
