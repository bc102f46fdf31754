import { type AgentKey, agentKeyText } from '@writ/kernel';
import { type ToolCallRow, toolCallKeyOf } from '../../store/tool-calls.ts';

/** How long an equal call waits for the end of an answer that is being sent, ms. */
const SENDING_MS = 1_000;

/** Results that are being sent: an equal call that arrives directly after one is a new one, not a repeat. */
export class Deliveries {
  readonly #sending = new Map<string, Promise<void>>();

  /** Notes that the result of a call is about to be sent; call the returned function when it was, or was not. */
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

  /** Waits for results of equal calls that are being sent. */
  async settled(agent: AgentKey, digest: string): Promise<void> {
    await this.#sending.get(keyOf(agent, digest));
  }
}

function keyOf(agent: AgentKey, digest: string): string {
  return `${agentKeyText(agent)}/${digest}`;
}
