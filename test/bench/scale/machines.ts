import type { EventQueue } from './event-queue.ts';

interface Work {
  readonly forMs: number;
  readonly then: () => void;
}

/** Processors that serve work in order of arrival. */
export class Cores {
  readonly #queue: EventQueue;
  readonly #waiting: Work[] = [];
  #idle: number;

  constructor(queue: EventQueue, count: number) {
    this.#queue = queue;
    this.#idle = count;
  }

  run(forMs: number, then: () => void): void {
    this.#waiting.push({ forMs, then });
    this.#start();
  }

  #start(): void {
    while (this.#idle > 0) {
      const work = this.#waiting.shift();
      if (work === undefined) return;
      this.#idle -= 1;
      this.#queue.after(work.forMs, () => {
        this.#idle += 1;
        work.then();
        this.#start();
      });
    }
  }
}

/** The event loop of a process: one piece of work at a time, on any of its machine's processors. */
export class EventLoop {
  readonly #cores: Cores;
  readonly #waiting: Work[] = [];
  #isBusy = false;

  constructor(cores: Cores) {
    this.#cores = cores;
  }

  run(forMs: number, then: () => void): void {
    this.#waiting.push({ forMs, then });
    this.#start();
  }

  #start(): void {
    if (this.#isBusy) return;
    const work = this.#waiting.shift();
    if (work === undefined) return;
    this.#isBusy = true;
    this.#cores.run(work.forMs, () => {
      this.#isBusy = false;
      work.then();
      this.#start();
    });
  }
}

/** The log of a database server: commits that wait while it is flushed share the next flush. */
export class Log {
  readonly #queue: EventQueue;
  readonly #flushMs: number;
  #waiting: (() => void)[] = [];
  #isFlushing = false;

  constructor(queue: EventQueue, flushMs: number) {
    this.#queue = queue;
    this.#flushMs = flushMs;
  }

  flush(then: () => void): void {
    this.#waiting.push(then);
    this.#start();
  }

  #start(): void {
    if (this.#isFlushing || this.#waiting.length === 0) return;
    this.#isFlushing = true;
    const flushed = this.#waiting;
    this.#waiting = [];
    this.#queue.after(this.#flushMs, () => {
      this.#isFlushing = false;
      for (const then of flushed) then();
      this.#start();
    });
  }
}
