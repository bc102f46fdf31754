import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import type { ServiceName } from '@writ/identity';
import type { ReplicaId, ReplicaName } from './parts.ts';

const SERVICES = resolve(import.meta.dirname, '../../../../services');
/** A third of a start is compiling what the one before has compiled. */
const COMPILE_CACHE = process.env.NODE_COMPILE_CACHE ?? join(tmpdir(), 'writ-compile-cache');
const KEPT_LINES = 200;

/** One listener for all of them, which are many. */
const RUNNING = new Set<ChildProcess>();
process.once('exit', () => {
  for (const child of RUNNING) child.kill('SIGKILL');
});

/** A replica of a service: a process of its own that can be killed, frozen and started again. */
export interface Replica {
  readonly name: ReplicaName;
  readonly service: ServiceName;
  /** `host:port` where it listens for services, the same after a restart. */
  readonly address: string;
  /** Whether its process is there and not frozen. */
  readonly isUp: boolean;
  /** Ends that nobody asked for, each with the last lines of its log; a sound replica has none. */
  readonly crashes: readonly string[];
  /** The last lines that it wrote to its standard error: its log. */
  readonly log: readonly string[];
  /** Starts it where it was; resolves when it listens. */
  start(): Promise<void>;
  /** kill -9; resolves when it is gone. */
  kill(): Promise<void>;
  /** SIGTERM; resolves with its exit code when it has drained and ended. */
  stop(): Promise<number | null>;
  /** SIGSTOP: its connections stay, and nobody hears. */
  pause(): void;
  /** SIGCONT. */
  resume(): void;
}

/** A replica that has not been started yet. */
export class ReplicaProcess implements Replica {
  readonly name: ReplicaName;
  readonly service: ServiceName;
  readonly address: string;
  readonly log: string[] = [];
  readonly crashes: string[] = [];
  readonly #env: Readonly<Record<string, string>>;
  #child: ChildProcess | undefined;
  #isPaused = false;
  #isEnding = false;

  /** @param env every variable that it gets */
  constructor(id: ReplicaId, address: string, env: Readonly<Record<string, string>>) {
    this.name = id.name;
    this.service = id.service;
    this.address = address;
    this.#env = env;
  }

  get isUp(): boolean {
    return this.#child !== undefined && !this.#isPaused;
  }

  async start(): Promise<void> {
    if (this.#child !== undefined) throw new Error(`${this.name} is there already.`);
    const child = spawn(process.execPath, [join(SERVICES, this.service, 'src/main.ts')], {
      env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: COMPILE_CACHE, ...this.#env },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.#child = child;
    this.#isPaused = false;
    this.#isEnding = false;
    // A run that is interrupted leaves nothing behind.
    RUNNING.add(child);
    child.once('exit', () => {
      RUNNING.delete(child);
      if (this.#child === child) this.#child = undefined;
    });
    createInterface({ input: child.stderr }).on('line', (line) => this.#keep(line));
    const listens = Promise.withResolvers<void>();
    child.once('error', listens.reject);
    child.once('exit', () => {
      listens.reject(new Error(`${this.name} ended before it listened:\n${this.#lastWords()}`));
    });
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line.includes(' listens on ')) listens.resolve();
    });
    await listens.promise;
    child.once('exit', (code, signal) => {
      if (!this.#isEnding)
        this.crashes.push(`${this.name}: ${code ?? signal}\n${this.#lastWords()}`);
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

  async #end(signal: NodeJS.Signals): Promise<number | null> {
    const child = this.#child;
    if (child === undefined) return null;
    this.#isEnding = true;
    const ended = once(child, 'exit');
    child.kill(signal);
    const [code] = (await ended) as [number | null];
    return code;
  }

  #keep(line: string): void {
    this.log.push(line);
    if (this.log.length > KEPT_LINES) this.log.shift();
  }

  #lastWords(): string {
    return this.log.slice(-10).join('\n');
  }
}
