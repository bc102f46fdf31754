import type { RunKey } from '@writ/kernel';
import type { Replicas } from '@writ/store';
import type { Transaction } from 'kysely';
import type { SupervisorDatabase } from '../schema.ts';

/** What somebody may wait for: a run's timeline, its end, orders that are due, halts, events to hand on, audit records and their links, a tenant's approvals. */
export type Topic =
  | `run:${string}/${string}`
  | `run-ended:${string}/${string}`
  | 'orders'
  | 'halts'
  | 'outbox'
  | 'audit'
  | 'audit-linked'
  | `approvals:${string}`;

/** The topic of a run's timeline. */
export function runTopic({ tenant, runId }: RunKey): Topic {
  return `run:${tenant}/${runId}`;
}

/** The topic of a run's end, which comes beside that of its timeline. */
export function runEndTopic({ tenant, runId }: RunKey): Topic {
  return `run-ended:${tenant}/${runId}`;
}

const noted = new WeakMap<object, Set<Topic>>();

/** Says that `trx` changes something that others wait for; they are told once it is committed. */
export function noteChange(trx: Transaction<SupervisorDatabase>, topic: Topic): void {
  const topics = noted.get(trx);
  if (topics === undefined) noted.set(trx, new Set([topic]));
  else topics.add(topic);
}

/** What was noted during a transaction. */
export function notedChanges(trx: Transaction<SupervisorDatabase>): ReadonlySet<Topic> {
  return noted.get(trx) ?? new Set();
}

/**
 * Tells listeners what was committed, here or by another replica. Only a hint, which may be lost, so
 * whoever listens also looks by itself now and then.
 */
export class Changes {
  readonly #replicas: Replicas;
  readonly #listeners = new Map<Topic, Set<() => void>>();

  constructor(replicas: Replicas) {
    this.#replicas = replicas;
  }

  /** Calls `listener` after each commit that concerns `topic`; it must not throw. Returns how to stop. */
  subscribe(topic: Topic, listener: () => void): () => void {
    const listeners = this.#listeners.get(topic) ?? new Set();
    this.#listeners.set(topic, listeners);
    listeners.add(listener);
    const unsubscribe = this.#replicas.onHint(topic, listener);
    return () => {
      unsubscribe();
      listeners.delete(listener);
      if (listeners.size === 0) this.#listeners.delete(topic);
    };
  }

  /** Tells the listeners of `topics`. */
  announce(topics: Iterable<Topic>): void {
    for (const topic of topics) {
      // What a replica has in its outbox one of them delivers, which looks by itself.
      if (topic !== 'outbox') this.#replicas.hint(topic);
      for (const listener of [...(this.#listeners.get(topic) ?? [])]) listener();
    }
  }
}
