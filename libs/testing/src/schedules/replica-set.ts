import { copyFileSync, existsSync } from 'node:fs';
import { isWritError } from '@writ/kernel';
import {
  endSessions,
  endSessionsOf,
  type PostgresLocation,
  type SqliteLocation,
} from '../postgres/index.ts';

/** A service without its listeners, opened on a store that its replicas share. */
export interface ScheduledReplica {
  readonly store: {
    /** Absent for a service that stores no replica ids in its rows. */
    readonly replicas?: { stop(): Promise<void> };
    close(): Promise<void>;
  };
  /** Stops background work before the store is closed. */
  stop?(): Promise<void>;
}

/** The functions of a service that the randomized fault schedules call. */
export interface ScheduledService<R extends ScheduledReplica> {
  /**
   * Opens a replica.
   * @param isKilled whether the process of the replica was killed: from then on it has no effect outside its store
   */
  open(location: SqliteLocation | PostgresLocation, isKilled: () => boolean): Promise<R>;
  /**
   * Called after a replica was replaced; waits, for example, until the other replicas consider the killed replica dead.
   */
  onReplaced?(replica: R): Promise<void>;
}

interface Member<R> {
  readonly name: string;
  readonly replica: Promise<R>;
  /** Resolves when the process is killed. */
  readonly killed: PromiseWithResolvers<typeof KILLED>;
  isKilled: boolean;
}

const KILLED = Symbol('killed');

/**
 * Reason codes after which the outcome of a request is unknown, or the replica could not serve it, for example because
 * the machine is busy. Any other error is treated as a response.
 */
const LOST = /^STORE_(UNREACHABLE|COMMIT_FAILED|COMMIT_UNKNOWN|CLOSED|BUSY|TRANSACTION_TIMEOUT)$/;

function isLost(error: unknown): boolean {
  return isWritError(error) && LOST.test(error.reason);
}

let opened = 0;

/** The replicas of a service on one store. Their processes are killed, restarted and cut off from the database. */
export class ReplicaSet<R extends ScheduledReplica> {
  readonly #service: ScheduledService<R>;
  readonly #members: Member<R>[] = [];
  readonly #killed: Promise<unknown>[] = [];
  #location: SqliteLocation | PostgresLocation;
  #used: number;
  #faults = 0;

  private constructor(service: ScheduledService<R>, location: SqliteLocation | PostgresLocation) {
    this.#service = service;
    this.#location = location;
    this.#used = 1;
  }

  /** Opens `count` replicas. With SQLite, `count` must be 1, because the store is one file. */
  static async open<R extends ScheduledReplica>(
    service: ScheduledService<R>,
    location: SqliteLocation | PostgresLocation,
    count: number,
  ): Promise<ReplicaSet<R>> {
    const set = new ReplicaSet(service, location);
    for (let number = 0; number < count; number += 1) set.#members.push(set.#start());
    await Promise.all(set.#members.map(({ replica }) => replica));
    return set;
  }

  /** Number of kills, restarts and session losses. */
  get faults(): number {
    return this.#faults;
  }

  /** Sends requests to the first `count` replicas only. */
  use(count: number): void {
    this.#used = count;
  }

  /** The replicas that requests are sent to. */
  async all(): Promise<R[]> {
    return await Promise.all(this.#inUse.map(({ replica }) => replica));
  }

  /**
   * Sends a request until its outcome is known, each time to a random replica. A killed replica never responds.
   * @throws the error that the replica returns
   */
  async request<T>(random: () => number, make: (replica: R) => Promise<T>): Promise<T> {
    for (;;) {
      const member = this.#any(random);
      try {
        const replica = await member.replica;
        const answer = await Promise.race([make(replica), member.killed.promise]);
        if (!member.isKilled) return answer as T;
      } catch (error) {
        if (member.isKilled) continue;
        if (!isLost(error)) throw error;
      }
    }
  }

  /** Sends a request to every replica in use; see {@link ReplicaSet.request}. */
  async requestAll<T>(make: (replica: R) => Promise<T>): Promise<T[]> {
    const requests = this.#inUse.map((_, index) =>
      this.request(() => index / this.#inUse.length, make),
    );
    return await Promise.all(requests);
  }

  /** Terminates the database sessions that have an open transaction, which releases their locks. */
  async loseSessions(): Promise<void> {
    this.#faults += 1;
    if (this.#location.dialect === 'postgres') await endSessions(this.#location);
  }

  /**
   * Kills the process of a replica and starts another one. Uncommitted changes are lost: its PostgreSQL sessions are
   * terminated; with SQLite, the next process opens a copy of the files in their current state.
   */
  async kill(random: () => number): Promise<void> {
    this.#faults += 1;
    const member = this.#any(random);
    const replica = await member.replica;
    const { store } = replica;
    member.isKilled = true;
    if (this.#location.dialect === 'sqlite') this.#location = copyOf(this.#location);
    // The process neither renews nor reopens the session that marks it as alive.
    this.#killed.push(store.replicas?.stop() ?? Promise.resolve());
    await this.#replace(member, async () => {
      if (this.#location.dialect === 'postgres') await endSessionsOf(this.#location, member.name);
      this.#killed.push(closed(replica));
    });
  }

  /** Shuts a replica down and starts another one. */
  async restart(random: () => number): Promise<void> {
    this.#faults += 1;
    const member = this.#any(random);
    const replica = await member.replica;
    await this.#replace(member, () => closed(replica));
  }

  async close(): Promise<void> {
    const replicas = await Promise.all(this.#members.map(({ replica }) => replica));
    await Promise.allSettled([...replicas.map(closed), ...this.#killed]);
  }

  get #inUse(): readonly Member<R>[] {
    return this.#members.slice(0, this.#used);
  }

  #any(random: () => number): Member<R> {
    const member = this.#inUse[Math.floor(random() * this.#used)];
    if (member === undefined) throw new Error('There is no replica.');
    return member;
  }

  /** Starts a process; it opens its store after `ended` has resolved. */
  #start(ended: () => Promise<void> = async () => undefined): Member<R> {
    opened += 1;
    const name = `scheduled-${opened}`;
    const killed = Promise.withResolvers<typeof KILLED>();
    const open = async (): Promise<R> => {
      await ended();
      for (;;) {
        try {
          return await this.#service.open(this.#locationFor(name), () => member.isKilled);
        } catch (error) {
          // The sessions of the process were terminated during its start, so it is started again.
          if (!isLost(error)) throw error;
        }
      }
    };
    const member: Member<R> = { name, killed, isKilled: false, replica: open() };
    return member;
  }

  /** Replaces the process of a replica; new requests wait until the next process has started. */
  async #replace(member: Member<R>, ended: () => Promise<void>): Promise<void> {
    const next = this.#start(ended);
    this.#members[this.#members.indexOf(member)] = next;
    if (member.isKilled) member.killed.resolve(KILLED);
    await this.#service.onReplaced?.(await next.replica);
  }

  /**
   * Returns the location with `application_name` set to the name of the process, so that endSessionsOf() finds its
   * sessions.
   */
  #locationFor(name: string): SqliteLocation | PostgresLocation {
    if (this.#location.dialect === 'sqlite') return this.#location;
    const url = new URL(this.#location.url);
    url.searchParams.set('application_name', name);
    return { ...this.#location, url: url.href };
  }
}

async function closed({ store, stop }: ScheduledReplica): Promise<void> {
  await stop?.();
  await store.close();
}

/**
 * Copies the SQLite files in the state that a killed process would leave. The copy is synchronous, so no write runs
 * during it.
 */
function copyOf({ file }: SqliteLocation): SqliteLocation {
  opened += 1;
  const copy = `${file.replace(/\.\d+$/, '')}.${opened}`;
  for (const suffix of ['', '-wal']) {
    if (existsSync(`${file}${suffix}`)) copyFileSync(`${file}${suffix}`, `${copy}${suffix}`);
  }
  return { dialect: 'sqlite', file: copy };
}
