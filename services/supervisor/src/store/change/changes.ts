import type { RunKey } from '@writ/kernel';
import type { Replicas } from '@writ/store';

/**
 * What a component can subscribe to: a run's timeline or end, due orders, halts, outbox events, notifications to send
 * and ended attempts to send one, audit records and their links, a tenant's approvals, the states of a tenant's runs.
 */
export type Topic =
  | `run:${string}/${string}`
  | `run-ended:${string}/${string}`
  | 'orders'
  | 'halts'
  | 'outbox'
  | 'notifications'
  | 'notification-attempts'
  | 'audit'
  | 'audit-linked'
  | `approvals:${string}`
  | `runs:${string}`;

/** The topic of a run's timeline. */
export function runTopic({ tenant, runId }: RunKey): Topic {
  return `run:${tenant}/${runId}`;
}

/** The topic of the states of a tenant's runs. */
export function runsTopic(tenant: string): Topic {
  return `runs:${tenant}`;
}

/** The topic of a run's end; an end also changes {@link runTopic}. */
export function runEndTopic({ tenant, runId }: RunKey): Topic {
  return `run-ended:${tenant}/${runId}`;
}

/**
 * Notifies subscribers of the commits of this replica and of other replicas. A notification may be lost, so subscribers
 * also poll.
 */
export class Changes {
  readonly #replicas: Pick<Replicas, 'hint' | 'onHint'>;
  readonly #listeners = new Map<Topic, Set<() => void>>();
  #subscriptions = 0;

  constructor(replicas: Pick<Replicas, 'hint' | 'onHint'>) {
    this.#replicas = replicas;
  }

  /** The number of subscriptions. */
  get subscriptions(): number {
    return this.#subscriptions;
  }

  /**
   * Calls `listener`, which must not throw, after each commit that changes `topic`. Returns the unsubscribe function.
   */
  subscribe(topic: Topic, listener: () => void): () => void {
    const listeners = this.#listeners.get(topic) ?? new Set();
    this.#listeners.set(topic, listeners);
    listeners.add(listener);
    this.#subscriptions += 1;
    const unsubscribe = this.#replicas.onHint(topic, listener);
    return () => {
      unsubscribe();
      if (listeners.delete(listener)) this.#subscriptions -= 1;
      if (listeners.size === 0) this.#listeners.delete(topic);
    };
  }

  /** Notifies the subscribers of `topics`. */
  announce(topics: Iterable<Topic>): void {
    for (const topic of topics) {
      // Other replicas get no hint for the outbox: only one replica relays it, and that replica polls.
      if (topic !== 'outbox') this.#replicas.hint(topic);
      for (const listener of [...(this.#listeners.get(topic) ?? [])]) listener();
    }
  }
}
