import { AsyncLocalStorage } from 'node:async_hooks';
import { UnavailableError } from '@writ/kernel';
import type { NatsSettings } from './options.ts';
import { Pause } from './pause.ts';
import { retryDelay } from './retry-delay.ts';
import { type NatsSession, openSession } from './session.ts';

/** Keeps a session with a NATS server: when one is lost, makes the next, for as long as it takes. */
export class NatsLink {
  readonly #settings: NatsSettings;
  readonly #onSession: (session: NatsSession) => void;
  readonly #pause = new Pause();
  #session: NatsSession | undefined;
  #why: unknown;
  #loop: Promise<void> | undefined;
  #closed = false;

  /** @param onSession told of every new session */
  constructor(settings: NatsSettings, onSession: (session: NatsSession) => void) {
    this.#settings = settings;
    this.#onSession = onSession;
  }

  /**
   * Resolves with the first session, or without one when the server does not answer in time; it is
   * then looked for further on.
   * @throws what {@link openSession} throws, when waiting would not mend it
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
   * The session, if there is one now.
   * @throws UnavailableError BUS_UNREACHABLE
   */
  get session(): NatsSession {
    if (this.#session !== undefined) return this.#session;
    throw new UnavailableError(
      'BUS_UNREACHABLE',
      'There is no connection to NATS now.',
      {},
      {
        cause: this.#why,
      },
    );
  }

  /** The session, or undefined. */
  get current(): NatsSession | undefined {
    return this.#session;
  }

  /** Hands over what is on its way, and looks for no further session. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#pause.end();
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
        this.#why = error;
        this.#settings.onError(error, {});
        if (!(error instanceof UnavailableError)) first.reject(error);
      }
      if (!this.#closed) await this.#pause.wait(retryDelay(failures, this.#settings));
    }
    first.resolve();
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
