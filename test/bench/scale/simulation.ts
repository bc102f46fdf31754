import { quantileOf } from '../measure.ts';
import { EventQueue } from './event-queue.ts';
import { Cores, EventLoop, Log } from './machines.ts';

/** Times of writes, ms, as measured. */
export interface WriteTimes {
  /** Processor time of the process. */
  readonly process: { readonly perTransaction: number; readonly perCommit: number };
  /** Processor time of the database server. */
  readonly server: { readonly perTransaction: number; readonly perCommit: number };
  /** Time to flush the log of the server. */
  readonly flush: number;
}

/** A simulated installation and its load. */
export interface Installation {
  readonly times: WriteTimes;
  readonly processes: number;
  /** Number of database connections of a process that write concurrently. */
  readonly sessions: number;
  /** Cores that the processes and the server share, or cores of the server when each process has its own core. */
  readonly cores: { readonly shared: number } | { readonly server: number };
  /** Concurrent writers of all processes; each writes to a run of its own. */
  readonly writers: number;
  /** Mean time between the steps of a writer, ms, distributed exponentially; 0 for none. */
  readonly thinkMs: number;
  /** Transactions of a step, one after another. */
  readonly transactionsPerStep: number;
  /**
   * Number of writers whose transactions are serialized with each other, because they belong to one tenant; default 0.
   */
  readonly serialized?: number;
  /**
   * Failure of some processes at time `at`, ms; their writers continue in the other processes `takeOverMs` later.
   */
  readonly failure?: {
    readonly processes: number;
    readonly at: number;
    readonly takeOverMs: number;
  };
}

/** Result of a simulation, without its warm-up. */
export interface Simulated {
  /** Committed transactions per second. */
  readonly perSecond: number;
  /** Time of a step, ms. */
  readonly p50: number;
  readonly p99: number;
  /** Median time of a step of the writers that are not serialized, ms. */
  readonly othersP50: number;
}

/** Minimum (when enough transactions wait) and maximum number of transactions in a batch, as in the store. */
const MIN_SHARE = 4;
const MAX_BATCH = 64;

/** The key of the writers whose transactions are serialized with each other. */
const SERIALIZED = 'serialized';

/** How long an installation is simulated. */
export interface SimulationTerms {
  /** Simulated time that is measured, ms. */
  readonly forMs: number;
  /** Simulated time before the measurement, ms. */
  readonly warmUpMs: number;
  /** Returns numbers in [0, 1). */
  readonly random: () => number;
}

/** Simulates an installation. The same random numbers give the same result. */
export function simulate(
  installation: Installation,
  { forMs, warmUpMs, random }: SimulationTerms,
): Simulated {
  const queue = new EventQueue();
  const simulation = new Simulation(queue, installation, random);
  queue.runUntil(warmUpMs);
  simulation.forget();
  queue.runUntil(warmUpMs + forMs);
  return simulation.figures(forMs);
}

interface Transaction {
  /** Transactions with the same key are never in two batches at the same time. */
  readonly key: string;
  readonly done: () => void;
  /** Called instead of `done` when the process has stopped. */
  readonly repeat: () => void;
}

interface WritingProcess {
  readonly loop: EventLoop;
  readonly waiting: Transaction[];
  idleSessions: number;
  isAlive: boolean;
}

interface Step {
  readonly ms: number;
  readonly isSerialized: boolean;
}

class Simulation {
  readonly #queue: EventQueue;
  readonly #installation: Installation;
  readonly #random: () => number;
  readonly #server: Cores;
  readonly #log: Log;
  readonly #processes: readonly WritingProcess[];
  /** Keys of the batches in progress, in all processes. */
  readonly #held = new Set<string>();
  #steps: Step[] = [];
  #committed = 0;

  constructor(queue: EventQueue, installation: Installation, random: () => number) {
    this.#queue = queue;
    this.#installation = installation;
    this.#random = random;
    const { cores, processes, sessions, times, writers, failure } = installation;
    const isShared = 'shared' in cores;
    this.#server = new Cores(queue, isShared ? cores.shared : cores.server);
    this.#log = new Log(queue, times.flush);
    this.#processes = Array.from({ length: processes }, () => ({
      loop: new EventLoop(isShared ? this.#server : new Cores(queue, 1)),
      waiting: [],
      idleSessions: sessions,
      isAlive: true,
    }));
    for (let writer = 0; writer < writers; writer += 1) this.#think(writer);
    if (failure !== undefined) queue.after(failure.at, () => this.#fail(failure.processes));
  }

  forget(): void {
    this.#steps = [];
    this.#committed = 0;
  }

  figures(forMs: number): Simulated {
    const sorted = (steps: readonly Step[]) => steps.map(({ ms }) => ms).toSorted((a, b) => a - b);
    const all = sorted(this.#steps);
    const others = sorted(this.#steps.filter(({ isSerialized }) => !isSerialized));
    return {
      perSecond: this.#committed / (forMs / 1_000),
      p50: quantileOf(all, 0.5),
      p99: quantileOf(all, 0.99),
      othersP50: quantileOf(others, 0.5),
    };
  }

  #think(writer: number): void {
    const { thinkMs } = this.#installation;
    this.#queue.after(-Math.log(1 - this.#random()) * thinkMs, () =>
      this.#step(writer, this.#queue.now, 0),
    );
  }

  /** Runs the transactions of a step, starting with the `index`th. */
  #step(writer: number, startedAt: number, index: number): void {
    const { transactionsPerStep, serialized = 0 } = this.#installation;
    const isSerialized = writer < serialized;
    if (index === transactionsPerStep) {
      this.#steps.push({ ms: this.#queue.now - startedAt, isSerialized });
      this.#think(writer);
      return;
    }
    const takenOverMs = this.#takenOverMs(writer);
    if (takenOverMs > 0) {
      this.#queue.after(takenOverMs, () => this.#step(writer, startedAt, index));
      return;
    }
    const process = this.#processOf(writer);
    process.waiting.push({
      key: isSerialized ? SERIALIZED : `run ${writer}`,
      done: () => this.#step(writer, startedAt, index + 1),
      repeat: () => this.#step(writer, startedAt, index),
    });
    // Transactions of the same turn of the event loop share a commit.
    this.#queue.after(0, () => this.#startBatches(process));
  }

  /** Returns the time until another process takes over a writer whose process has stopped, ms. */
  #takenOverMs(writer: number): number {
    const { failure } = this.#installation;
    if (failure === undefined || this.#home(writer).isAlive) return 0;
    return failure.at + failure.takeOverMs - this.#queue.now;
  }

  #processOf(writer: number): WritingProcess {
    const home = this.#home(writer);
    if (home.isAlive) return home;
    const alive = this.#processes.filter(({ isAlive }) => isAlive);
    const other = alive[writer % alive.length];
    if (other === undefined) throw new Error('No process is left.');
    return other;
  }

  #home(writer: number): WritingProcess {
    const home = this.#processes[writer % this.#processes.length];
    if (home === undefined) throw new Error('An installation has at least one process.');
    return home;
  }

  #startBatches(process: WritingProcess): void {
    while (process.idleSessions > 0 && process.isAlive) {
      const batch = this.#nextBatch(process);
      if (batch.length === 0) return;
      process.idleSessions -= 1;
      for (const { key } of batch) this.#held.add(key);
      this.#begin(process, batch);
    }
  }

  /**
   * Removes and returns the next batch for one idle connection: transactions whose keys are in no other batch; empty
   * when there are none.
   */
  #nextBatch({ waiting, idleSessions }: WritingProcess): Transaction[] {
    const free = waiting.filter(({ key }) => !this.#held.has(key));
    const share = Math.min(MAX_BATCH, Math.max(MIN_SHARE, Math.ceil(free.length / idleSessions)));
    const taken = new Set<Transaction>();
    const keys = new Set<string>();
    for (const transaction of free) {
      if (taken.size === MAX_BATCH) break;
      if (taken.size >= share && !keys.has(transaction.key)) continue;
      keys.add(transaction.key);
      taken.add(transaction);
    }
    waiting.splice(0, waiting.length, ...waiting.filter((each) => !taken.has(each)));
    return [...taken];
  }

  #begin(process: WritingProcess, batch: readonly Transaction[]): void {
    const { times } = this.#installation;
    process.loop.run(times.process.perCommit, () => {
      this.#server.run(times.server.perCommit, () => this.#serve(process, batch, 0));
    });
  }

  #serve(process: WritingProcess, batch: readonly Transaction[], index: number): void {
    const { times } = this.#installation;
    if (index === batch.length) {
      this.#log.flush(() => this.#end(process, batch));
      return;
    }
    process.loop.run(times.process.perTransaction, () => {
      this.#server.run(times.server.perTransaction, () => this.#serve(process, batch, index + 1));
    });
  }

  #end(process: WritingProcess, batch: readonly Transaction[]): void {
    for (const { key } of batch) this.#held.delete(key);
    process.idleSessions += 1;
    if (process.isAlive) this.#committed += batch.length;
    for (const { done, repeat } of batch) (process.isAlive ? done : repeat)();
    // Only transactions with the serialized key can wait for this batch in other processes.
    const freed = batch.some(({ key }) => key === SERIALIZED) ? this.#processes : [process];
    for (const each of freed) this.#startBatches(each);
  }

  #fail(count: number): void {
    for (const process of this.#processes.slice(0, count)) {
      process.isAlive = false;
      for (const { repeat } of process.waiting.splice(0)) repeat();
    }
  }
}
