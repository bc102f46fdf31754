import { once } from 'node:events';
import { CancellationError } from '@writ/kernel';
import type { WebResponse } from '@writ/rpc/edge';
import type { Dialect } from '../../wire/dialects/dialect.ts';
import type { HttpError } from '../../wire/http-error.ts';
import { sendJson } from '../json-http.ts';

/** Sends an error; in a stream that has begun, as its last event. */
export function sendError(
  response: WebResponse,
  dialect: Dialect,
  { status, headers, facts }: HttpError,
): void {
  if (response.writableEnded || response.destroyed) return;
  if (!response.headersSent) sendJson(response, dialect.error(facts), headers, status);
  else response.end(dialect.frame(JSON.stringify(dialect.failure(facts))));
}

/** Writes server-sent events, no faster than the client reads; sends keep-alives while there are no events. */
export class EventStream {
  readonly #response: WebResponse;
  readonly #dialect: Dialect;
  readonly #keepAliveMs: number;
  readonly #closed = new AbortController();
  #keepAlive: NodeJS.Timeout | undefined;

  /** @param keepAliveMs time without an event after which a keep-alive is sent */
  constructor(response: WebResponse, dialect: Dialect, keepAliveMs: number) {
    this.#response = response;
    this.#dialect = dialect;
    this.#keepAliveMs = keepAliveMs;
    response.once('close', () => {
      clearInterval(this.#keepAlive);
      this.#closed.abort();
    });
    if (response.destroyed) this.#closed.abort();
  }

  /** Whether the headers were sent. */
  get hasBegun(): boolean {
    return this.#response.headersSent;
  }

  /** Sends the headers, once. */
  begin(headers: Readonly<Record<string, string>>): void {
    if (this.hasBegun) return;
    const response = this.#response;
    response.writeHead(200, {
      'content-type': 'text/event-stream',
      'cache-control': 'no-store',
      ...headers,
    });
    // Over HTTP/1.1, Node buffers unflushed headers until the first event, which may wait for a person.
    response.flushHeaders();
    const keepAlive = () => {
      if (!response.writableEnded && !response.writableNeedDrain) {
        response.write(this.#dialect.keepAlive);
      }
    };
    this.#keepAlive = setInterval(keepAlive, this.#keepAliveMs).unref();
  }

  /**
   * Sends one event.
   * @throws CancellationError when the connection is closed before the client has read the buffered events
   */
  async send(json: string): Promise<void> {
    this.#keepAlive?.refresh();
    if (this.#response.write(this.#dialect.frame(json))) return;
    try {
      await once(this.#response, 'drain', { signal: this.#closed.signal });
    } catch {
      throw new CancellationError('the client does not read its answer, or has disconnected');
    }
  }

  end(): void {
    clearInterval(this.#keepAlive);
    this.#response.end(this.#dialect.end);
  }
}
