import { AsyncLocalStorage } from 'node:async_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { backoffMs, UnavailableError } from '@writ/kernel';
import type { NatsSettings } from './options.ts';
import { type NatsSession, openSession } from './session.ts';

/** Keeps a session with a NATS server and reconnects when it is lost. */
export class NatsLink {
  readonly #settings: NatsSettings;
  readonly #onSession: (session: NatsSession) => void;
  readonly #closing = new AbortController();
  #session: NatsSession | undefined;
  #lastError: unknown;
  #loop: Promise<void> | undefined;
  #closed = false;

  /** @param onSession receives every new session */
  constructor(settings: NatsSettings, onSession: (session: NatsSession) => void) {
    this.#settings = settings;
    this.#onSession = onSession;
  }

  /**
   * Resolves when the first session is open, or after the start timeout. After the timeout, the link keeps retrying the
   * connection.
   * @throws what {@link openSession} throws, unless a retry may succeed
   */
  async open(): Promise<void> {
    const first = Promise.withResolvers<void>();
    const timer = setTimeout(first.resolve, this.#settings.startTimeoutMs);
    this.#loop = AsyncLocalStorage.snapshot()(() => this.#run(first));
    try {
      await first.promise;
    } catch (error) {
      await this.close();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  /**
   * The current session.
   * @throws UnavailableError BUS_UNREACHABLE
   */
  get session(): NatsSession {
    if (this.#session !== undefined) return this.#session;
    throw new UnavailableError(
      'BUS_UNREACHABLE',
      'Not connected to NATS.',
      {},
      {
        cause: this.#lastError,
      },
    );
  }

  /** The session, or undefined. */
  get current(): NatsSession | undefined {
    return this.#session;
  }

  /** Drains the connection and does not reconnect. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#closing.abort();
    const connection = this.#session?.connection;
    if (connection !== undefined && !connection.isClosed()) {
      await Promise.race([
        connection.drain().catch((error: unknown) => this.#settings.onError(error, {})),
        connection.closed(),
      ]);
    }
    await this.#loop;
  }

  async #run(first: PromiseWithResolvers<void>): Promise<void> {
    let failures = 0;
    while (!this.#closed) {
      try {
        const session = await openSession(this.#settings);
        failures = 0;
        await this.#keep(session, first);
      } catch (error) {
        failures += 1;
        this.#lastError = error;
        this.#settings.onError(error, {});
        if (!(error instanceof UnavailableError)) first.reject(error);
      }
      if (!this.#closed) await this.#pause(failures);
    }
    first.resolve();
  }

  async #pause(failures: number): Promise<void> {
    const { retryBaseMs: baseMs, retryMaxMs: maxMs } = this.#settings;
    const delayMs = backoffMs(failures, { baseMs, maxMs });
    await sleep(delayMs, undefined, { signal: this.#closing.signal }).catch(() => undefined);
  }

  async #keep(session: NatsSession, first: PromiseWithResolvers<void>): Promise<void> {
    if (this.#closed) {
      await session.connection.close();
      return;
    }
    this.#session = session;
    this.#onSession(session);
    first.resolve();
    const ended = await session.connection.closed();
    this.#session = undefined;
    if (this.#closed) return;
    const why = ended instanceof Error ? { cause: ended } : {};
    throw new UnavailableError('BUS_UNREACHABLE', 'The connection to NATS was lost.', {}, why);
  }
}
