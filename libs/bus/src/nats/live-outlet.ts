import type { MsgHdrs, NatsConnection } from '@nats-io/transport-node';
import type { BusMessage } from '../bus.ts';

/** Maximum number of unconfirmed live messages; further messages are dropped. */
const CAPACITY = 4_096;

/** Sends live messages, and drops them if a slow connection would accumulate them. */
export class LiveOutlet {
  #unconfirmed = 0;
  #confirming = false;

  /**
   * Sends a message, or drops it if the connection is closed or slow or if the payload exceeds half the maximum of the
   * server; never waits and never fails.
   */
  publish(connection: NatsConnection, message: BusMessage, headers: MsgHdrs): void {
    const { subject, payload } = message;
    const largest = connection.info?.max_payload ?? 0;
    if (connection.isClosed() || connection.isDraining() || payload.byteLength > largest / 2)
      return;
    if (this.#unconfirmed >= CAPACITY) return;
    this.#unconfirmed += 1;
    connection.publish(subject, payload, { headers });
    if (!this.#confirming) void this.#confirm(connection);
  }

  async #confirm(connection: NatsConnection): Promise<void> {
    this.#confirming = true;
    const sent = this.#unconfirmed;
    // Messages on a lost connection are no longer in flight.
    await connection.flush().catch(() => undefined);
    this.#unconfirmed -= sent;
    this.#confirming = false;
  }
}
