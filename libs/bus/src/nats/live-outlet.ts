import type { MsgHdrs, NatsConnection } from '@nats-io/transport-node';
import type { BusMessage } from '../bus.ts';

/** Maximum number of unconfirmed live messages; further messages are dropped. */
const CAPACITY = 4_096;

/**
 * Sends live messages on one connection, and drops them if a slow connection would accumulate them. A new connection
 * needs a new outlet, because a flush that is in flight when its connection is lost never settles.
 */
export class LiveOutlet {
  readonly #connection: NatsConnection;
  #unconfirmed = 0;
  #confirming = false;

  constructor(connection: NatsConnection) {
    this.#connection = connection;
  }

  /**
   * Sends a message, or drops it if the connection is closed or slow or if the payload exceeds half the maximum of the
   * server; never waits and never fails.
   */
  publish({ subject, payload }: BusMessage, headers: MsgHdrs): void {
    const connection = this.#connection;
    const largest = connection.info?.max_payload ?? 0;
    if (connection.isClosed() || connection.isDraining() || payload.byteLength > largest / 2)
      return;
    if (this.#unconfirmed >= CAPACITY) return;
    this.#unconfirmed += 1;
    connection.publish(subject, payload, { headers });
    if (!this.#confirming) void this.#confirm();
  }

  async #confirm(): Promise<void> {
    this.#confirming = true;
    const sent = this.#unconfirmed;
    // A failed flush means that the connection is closed, so that nothing more is sent on it.
    await this.#connection.flush().catch(() => undefined);
    this.#unconfirmed -= sent;
    this.#confirming = false;
  }
}
