/** One message on a bus. Consumers share it: nobody may change its bytes. */
export interface BusMessage {
  /** The same for every repeat of the same event (HK-1). */
  readonly eventId: string;
  readonly subject: string;
  readonly payload: Uint8Array;
  /** Such as `traceparent`. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A subscription that can be ended. */
export interface Subscription {
  /**
   * Takes no further message; resolves when the handler has finished what it began, so a handler
   * must not await it. What comes for a durable that nobody attends to is kept for it: by NATS, or,
   * in one process, by the outboxes, because publishing fails until somebody is back.
   */
  unsubscribe(): Promise<void>;
}

/** How to take every message of a subject, each at least once. */
export interface DurableOptions {
  /** NATS subject; `*` stands for one token, `>` for the rest. */
  readonly subject: string;
  /** Name of the consumer, an id; subscribers of the same name share the messages between them. */
  readonly durable: string;
  /**
   * Resolves when what the message means is committed; a throw has it delivered again. Deliveries
   * repeat, so it must be idempotent on the event id. Messages of one publisher come in order,
   * those of several may overlap.
   */
  readonly handler: (message: BusMessage) => Promise<void>;
  /**
   * Takes messages of one publisher that come together, in their order: all of them, or none and
   * throws, whereupon each comes by itself. Used by a bus that delivers several at once.
   */
  readonly handleAll?: (messages: readonly BusMessage[]) => Promise<void>;
}

/** How to see messages as they pass, without any promise that they arrive. */
export interface LiveOptions {
  /** NATS subject; `*` stands for one token, `>` for the rest. */
  readonly subject: string;
  /** One message at a time; `missed` says how many were dropped right before it. */
  readonly handler: (message: BusMessage, missed: number) => void | Promise<void>;
  /** Messages that may wait for a slow handler, the oldest being dropped first; default 256. */
  readonly capacity?: number;
}

/** Carries messages between services (HK-2). NATS and the in-process bus look alike through it. */
export interface Bus {
  /**
   * Resolves when the bus is answerable for the message, so that the outbox may mark it. Live
   * subscribers see it, too, and see it again when it is repeated.
   * @throws InvalidRequestError INVALID_SUBJECT; UnavailableError when the message was not taken
   */
  publish(message: BusMessage): Promise<void>;

  /**
   * Publishes messages of one publisher, in their order; rejects when not all of them were taken, and
   * they are to be published one by one. Only where that is less work than publishing each.
   * @throws as `publish`
   */
  publishAll?(messages: readonly BusMessage[]): Promise<void>;

  /**
   * Takes every message of a subject, each at least once.
   * @throws InvalidRequestError INVALID_SUBJECT, INVALID_ID; PreconditionError BUS_DURABLE_MISMATCH when the
   *   durable exists with another subject; UnavailableError BUS_CLOSED
   */
  subscribe(options: DurableOptions): Promise<Subscription>;

  /**
   * Whether what is published is taken at all now; false while a durable consumer that must be there
   * is away, as in a process that shares its bus with nobody.
   */
  hasSubscribers(): boolean;

  /** Shows a message to whoever looks right now; never fails for want of a listener. */
  publishLive(message: BusMessage): void;

  /** Sees messages as they pass, from both kinds of publishing. */
  subscribeLive(options: LiveOptions): Subscription;

  /** Takes no further message; resolves when handlers have finished theirs. */
  close(): Promise<void>;
}
