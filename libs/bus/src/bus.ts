/** One message on a bus. Consumers share it and must not modify its bytes. */
export interface BusMessage {
  /** The same for every delivery of the same event (HK-1). */
  readonly eventId: string;
  readonly subject: string;
  readonly payload: Uint8Array;
  /** Such as `traceparent`. */
  readonly headers: Readonly<Record<string, string>>;
}

/** An active subscription. */
export interface Subscription {
  /**
   * Stops the delivery; resolves when running handlers have finished, so a handler must not await it. Messages for a
   * durable consumer without subscribers are not lost: NATS stores them (in a stream for observers, for at most three
   * days); the in-process bus rejects them, so that they remain in the outbox.
   */
  unsubscribe(): Promise<void>;
}

/** The message of a failed handler, for the log: ids, never content. */
export interface BusFailure {
  readonly eventId: string;
  readonly subject: string;
  /** Name of the durable consumer; absent for a live subscriber. */
  readonly durable?: string;
  /** Whether the message was dropped, because the handler of the durable consumer rejected it as invalid. */
  readonly dropped?: true;
}

/** Options of a durable subscription, which receives every message of a subject at least once. */
export interface DurableOptions {
  /** NATS subject; `*` matches one token, `>` the rest. */
  readonly subject: string;
  /** Name of the consumer, an id; subscribers of the same name share the messages. */
  readonly durable: string;
  /**
   * Handles one message; resolves when its effect is committed. If the handler throws InvalidRequestError, the message
   * is reported and dropped; for every other error it is redelivered, and blocks later messages until it is handled. The
   * handler must be idempotent by event id. Messages of one publisher are delivered in order; messages of different
   * publishers may overlap.
   */
  readonly handler: (message: BusMessage) => Promise<void>;
  /**
   * Handles a batch of messages of one publisher in order: all or none. If it throws, the messages are delivered one by
   * one. Only the in-process bus calls it.
   */
  readonly handleAll?: (messages: readonly BusMessage[]) => Promise<void>;
}

/** Options of a live subscription, which receives messages without a delivery guarantee. */
export interface LiveOptions {
  /** NATS subject; `*` matches one token, `>` the rest. */
  readonly subject: string;
  /** Handles one message at a time; `missed` is the number of messages dropped before it. */
  readonly handler: (message: BusMessage, missed: number) => void | Promise<void>;
  /** Size of the queue of a slow handler; the oldest message is dropped first. Default 256. */
  readonly capacity?: number;
}

/** Delivers messages between services (HK-2); implemented on NATS and in process. */
export interface Bus {
  /**
   * Publishes a message; resolves when the bus has accepted the message, so that the outbox may mark it as published.
   * Live subscribers receive the message each time it is published.
   * @throws InvalidRequestError INVALID_SUBJECT, INVALID_HEADER, BUS_MESSAGE_TOO_LARGE; PermissionDeniedError
   *   BUS_PERMISSION_DENIED; PreconditionError BUS_STREAM_MISMATCH; UnavailableError if the message was not accepted
   */
  publish(message: BusMessage): Promise<void>;

  /**
   * Publishes a batch of messages of one publisher in order; rejects if not all were accepted; the caller must then
   * publish the messages one by one. Present if a batch is cheaper than single messages.
   * @throws as `publish`
   */
  publishAll?(messages: readonly BusMessage[]): Promise<void>;

  /**
   * Subscribes to every message of a subject, each delivered at least once.
   * @throws InvalidRequestError INVALID_SUBJECT, INVALID_ID; PreconditionError BUS_DURABLE_MISMATCH if the
   *   durable consumer exists with another subject, BUS_CONSUMER_MISMATCH, BUS_FEATURE_UNSUPPORTED;
   *   PermissionDeniedError BUS_PERMISSION_DENIED; UnavailableError BUS_CLOSED
   */
  subscribe(options: DurableOptions): Promise<Subscription>;

  /**
   * Returns whether an attempt to publish can succeed. In process: false while a required durable consumer has no
   * subscriber, as in a service process without a shared bus. On NATS: true until the bus is closed. `publish` rejects
   * while the server is unreachable or a required consumer does not exist, but this method still returns true.
   */
  hasSubscribers(): boolean;

  /**
   * Publishes a message to the current live subscribers, if any. The message may be dropped.
   * @throws InvalidRequestError INVALID_SUBJECT, INVALID_HEADER
   */
  publishLive(message: BusMessage): void;

  /**
   * Subscribes to messages of both `publish` and `publishLive`.
   * @throws InvalidRequestError INVALID_SUBJECT; UnavailableError BUS_CLOSED
   */
  subscribeLive(options: LiveOptions): Subscription;

  /** Stops the delivery; resolves when running handlers have finished. */
  close(): Promise<void>;
}
