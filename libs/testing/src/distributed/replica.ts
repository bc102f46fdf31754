import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import type { ServiceName } from '@writ/identity';
import type { FakeClock } from '../faults/index.ts';
import type { ReplicaId, ReplicaName } from './parts.ts';

const REPOSITORY = resolve(import.meta.dirname, '../../../..');
/** Folder of the compile cache that all replicas share: compiling the modules takes a third of the start time. */
const COMPILE_CACHE = process.env.NODE_COMPILE_CACHE ?? join(tmpdir(), 'writ-compile-cache');
const KEPT_LINES = 200;

/** Running child processes; a shared `exit` listener kills them. */
const RUNNING = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of RUNNING) child.kill('SIGKILL');
});

/** A replica of a service in its own process, which can be killed, paused and restarted. */
export interface Replica {
  readonly name: ReplicaName;
  readonly service: ServiceName;
  /** `host:port` of its internal listener, the same after a restart. */
  readonly address: string;
  /** The id of its process; undefined while none runs. */
  readonly pid: number | undefined;
  /** Whether its process runs and is not paused. */
  readonly isUp: boolean;
  /** Unexpected exits, each with the last log lines. */
  readonly crashes: readonly string[];
  /** The last lines of its log (standard error). */
  readonly log: readonly string[];
  /**
   * Starts it on the same address; resolves when it listens.
   * @param build root of the source tree to run from now on, with its node_modules; default: the tree of the previous
   *   start, or this repository at the first start
   */
  start(build?: string): Promise<void>;
  /** Sends SIGKILL; resolves when the process has exited. */
  kill(): Promise<void>;
  /** Sends SIGTERM; resolves with the exit code once it has drained. */
  stop(): Promise<number | null>;
  /** Sends SIGSTOP: its connections stay open but are not served. */
  pause(): void;
  /** Sends SIGCONT. */
  resume(): void;
  /**
   * Sets its wall clock `aheadMs` ahead of the clock of the machine, or behind it when negative. The offset remains
   * after a restart.
   * @throws Error when the platform has no fake clocks
   */
  setClock(aheadMs: number): void;
}

/** Creates a replica that is not started yet. */
export class ReplicaProcess implements Replica {
  readonly name: ReplicaName;
  readonly service: ServiceName;
  readonly address: string;
  readonly log: string[] = [];
  readonly crashes: string[] = [];
  readonly #env: Readonly<Record<string, string>>;
  readonly #clock: FakeClock | undefined;
  #build = REPOSITORY;
  #child: ChildProcess | undefined;
  #isPaused = false;
  #isEnding = false;

  /** @param env the complete environment, apart from PATH, NODE_COMPILE_CACHE and the variables of `clock` */
  constructor(
    id: ReplicaId,
    address: string,
    env: Readonly<Record<string, string>>,
    clock?: FakeClock,
  ) {
    this.name = id.name;
    this.service = id.service;
    this.address = address;
    this.#env = { ...env, ...clock?.env };
    this.#clock = clock;
  }

  get pid(): number | undefined {
    return this.#child?.pid;
  }

  get isUp(): boolean {
    return this.#child !== undefined && !this.#isPaused;
  }

  async start(build = this.#build): Promise<void> {
    if (this.#child !== undefined) throw new Error(`Replica "${this.name}" is already running.`);
    this.#build = build;
    const main = join(build, 'services', this.service, 'src/main.ts');
    const child = spawn(process.execPath, [main], {
      env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: COMPILE_CACHE, ...this.#envOf(build) },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child = child;
    this.#isPaused = false;
    this.#isEnding = false;
    // An interrupted test run leaves no process behind.
    RUNNING.add(child);
    child.once('exit', () => {
      RUNNING.delete(child);
      if (this.#child === child) this.#child = undefined;
    });
    createInterface({ input: child.stderr }).on('line', (line) => this.#keep(line));
    const listens = Promise.withResolvers<void>();
    child.once('error', listens.reject);
    child.once('exit', () => {
      listens.reject(new Error(`${this.name} exited before it listened:\n${this.#lastLines()}`));
    });
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line.includes(' listens on ')) listens.resolve();
    });
    await listens.promise;
    child.once('exit', (code, signal) => {
      if (!this.#isEnding)
        this.crashes.push(`${this.name}: ${code ?? signal}\n${this.#lastLines()}`);
    });
  }

  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  async stop(): Promise<number | null> {
    this.resume();
    return await this.#end('SIGTERM');
  }

  pause(): void {
    this.#child?.kill('SIGSTOP');
    this.#isPaused = this.#child !== undefined;
  }

  resume(): void {
    this.#child?.kill('SIGCONT');
    this.#isPaused = false;
  }

  setClock(aheadMs: number): void {
    if (this.#clock === undefined) throw new Error('The platform has no fake clocks.');
    this.#clock.set(aheadMs);
  }

  async #end(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.#child;
    if (child === undefined) return null;
    this.#isEnding = true;
    const ended = once(child, 'exit');
    child.kill(signal);
    const [code] = (await ended) as [number | null];
    return code;
  }

  /**
   * Returns the environment in which paths inside this repository, such as the files of the example, refer to `build`
   * instead.
   */
  #envOf(build: string): Record<string, string> {
    return Object.fromEntries(
      Object.entries(this.#env).map(([name, value]) => [
        name,
        value.replaceAll(`${REPOSITORY}/`, `${build}/`),
      ]),
    );
  }

  #keep(line: string): void {
    this.log.push(line);
    if (this.log.length > KEPT_LINES) this.log.shift();
  }

  #lastLines(): string {
    return this.log.slice(-10).join('\n');
  }
}
