import type { LiveSubscriber } from './live-subscriber.ts';
import { matchSubject } from './subjects.ts';

/**
 * Live subscribers by what their subjects have before the first wildcard, so that a message costs the
 * same however many look at others.
 */
export class LiveSubscribers {
  readonly #byRoot = new Map<string, Set<LiveSubscriber>>();

  add(subscriber: LiveSubscriber): void {
    const root = rootOf(subscriber.subject);
    const sharers = this.#byRoot.get(root) ?? new Set();
    this.#byRoot.set(root, sharers);
    sharers.add(subscriber);
  }

  delete(subscriber: LiveSubscriber): void {
    const root = rootOf(subscriber.subject);
    const sharers = this.#byRoot.get(root);
    sharers?.delete(subscriber);
    if (sharers?.size === 0) this.#byRoot.delete(root);
  }

  /** Everybody. */
  all(): LiveSubscriber[] {
    return [...this.#byRoot.values()].flatMap((sharers) => [...sharers]);
  }

  /** Those that a message with this subject is for. */
  lookingAt(subject: string): LiveSubscriber[] {
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

/** Every beginning of a subject: none of its tokens, the first, the first two, …, all. */
function* rootsFor(subject: string): Generator<string> {
  yield '';
  for (let dot = subject.indexOf('.'); dot !== -1; dot = subject.indexOf('.', dot + 1)) {
    yield subject.slice(0, dot);
  }
  yield subject;
}
