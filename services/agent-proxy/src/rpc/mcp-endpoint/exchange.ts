import { once } from 'node:events';
import type { AuthInfo } from '@modelcontextprotocol/server';
import type { AgentKey } from '@writ/kernel';
import type { WebResponse } from '@writ/rpc/edge';
import type { RequestInProgress } from '../../app/agent/requests-in-progress.ts';
import { markResultDelivered, type ToolCallRow } from '../../app/tools/find-or-insert-tool-call.ts';
import type { ProxyContext } from '../../context.ts';

/**
 * One request of an MCP client: its agent, and the call to mark as delivered once the client has received the answer.
 */
export class Exchange {
  readonly agent: AgentKey;
  readonly open: RequestInProgress;
  /** The call whose result answers this request. */
  #answered: ToolCallRow | undefined;
  #endSending: () => void = () => undefined;

  constructor(agent: AgentKey, open: RequestInProgress) {
    this.agent = agent;
    this.open = open;
  }

  /** Returns the exchange of a request; the SDK passes it to handlers as the authorization info. */
  static of(authInfo: AuthInfo | undefined): Exchange {
    const exchange = authInfo?.extra?.exchange;
    if (exchange instanceof Exchange) return exchange;
    throw new TypeError('An MCP request arrived without its exchange.');
  }

  get authInfo(): AuthInfo {
    return { token: '', clientId: this.agent.instance, scopes: [], extra: { exchange: this } };
  }

  /** Records that the result of a call is being sent: after it has been delivered, an equal call is a new one. */
  answering(context: ProxyContext, row: ToolCallRow): void {
    this.#answered = row;
    this.#endSending = context.deliveries.begin(row);
  }

  /** Records that the client has received the answer; a client that disconnected gets it when it repeats the call. */
  async sent(context: ProxyContext, response: WebResponse): Promise<void> {
    const answered = this.#answered;
    if (answered === undefined) return;
    if (!response.writableFinished && !response.destroyed) {
      const ends = [once(response, 'finish'), once(response, 'close')];
      await Promise.race(ends).catch(() => undefined);
    }
    if (response.writableFinished) await markResultDelivered(context, answered);
  }

  close(): void {
    this.#endSending();
  }
}
