import type { LiveSubscriber } from './live-subscriber.ts';
import { matchSubject } from './subjects.ts';

/**
 * Live subscribers indexed by the tokens of their subjects before the first wildcard, so that the cost of a message
 * does not depend on subscribers of other subjects.
 */
export class LiveSubscribers {
  readonly #byRoot = new Map<string, Set<LiveSubscriber>>();

  add(subscriber: LiveSubscriber): void {
    const root = rootOf(subscriber.subject);
    const subscribers = this.#byRoot.get(root) ?? new Set();
    this.#byRoot.set(root, subscribers);
    subscribers.add(subscriber);
  }

  delete(subscriber: LiveSubscriber): void {
    const root = rootOf(subscriber.subject);
    const subscribers = this.#byRoot.get(root);
    subscribers?.delete(subscriber);
    if (subscribers?.size === 0) this.#byRoot.delete(root);
  }

  /** All subscribers. */
  all(): LiveSubscriber[] {
    return [...this.#byRoot.values()].flatMap((subscribers) => [...subscribers]);
  }

  /** The subscribers whose subjects match. */
  matching(subject: string): LiveSubscriber[] {
    if (this.#byRoot.size === 0) return [];
    const found: LiveSubscriber[] = [];
    for (const root of rootsFor(subject)) {
      for (const subscriber of this.#byRoot.get(root) ?? []) {
        if (matchSubject(subscriber.subject, subject)) found.push(subscriber);
      }
    }
    return found;
  }
}

function rootOf(pattern: string): string {
  const tokens = pattern.split('.');
  const wild = tokens.findIndex((token) => token === '*' || token === '>');
  return tokens.slice(0, wild === -1 ? tokens.length : wild).join('.');
}

/** The prefixes of a subject: no token, the first, the first two, …, all. */
function* rootsFor(subject: string): Generator<string> {
  yield '';
  for (let dot = subject.indexOf('.'); dot !== -1; dot = subject.indexOf('.', dot + 1)) {
    yield subject.slice(0, dot);
  }
  yield subject;
}
