import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { AGENT_WORKER_DEFAULTS } from '@writ/agent-worker';
import type { TestPlatform } from '@writ/testing/platform';
import { until } from '../e2e/scripted/until.ts';
import type { WorkerNews, WorkerOrder, WorkerSettings } from './frozen-worker-child.ts';
import { storeIn } from './worker-book.ts';

const CHILD = fileURLToPath(new URL('frozen-worker-child.ts', import.meta.url));
const LEASE_MS = 400;

/** One of two workers on one store, in a process that can be frozen. */
export class ForkedWorker {
  readonly address: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, address: string) {
    this.#child = child;
    this.address = address;
  }

  static async start({ dataDir, platform }: TestPlatform, workerId: string): Promise<ForkedWorker> {
    const settings: WorkerSettings = {
      addresses: platform.addresses,
      config: {
        ...AGENT_WORKER_DEFAULTS,
        port: 0,
        dataDir,
        store: { dialect: 'sqlite', file: storeIn(dataDir) },
        workerId,
        leaseTtlMs: LEASE_MS,
        // Only the one that agents are delivered to takes them up before their lease is over.
        pollMs: LEASE_MS / 2,
        drainMs: 500,
      },
    };
    const child = fork(CHILD, [JSON.stringify(settings)], { execArgv: [] });
    const { address } = await newsOf(child, 'up');
    return new ForkedWorker(child, address);
  }

  news<K extends WorkerNews['kind']>(kind: K): Promise<Extract<WorkerNews, { kind: K }>> {
    return newsOf(this.#child, kind);
  }

  /** Gives an order; answers how many transactions there were since the last one. */
  async order(order: Extract<WorkerOrder, { kind: 'freeze' }>) {
    const counted = this.news('count');
    this.#child.send(order);
    // It may have frozen late, in a round that was over without it.
    const thaw = setInterval(() => this.signal('SIGCONT'), 100);
    try {
      return await counted;
    } finally {
      clearInterval(thaw);
    }
  }

  signal(name: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child.kill(name);
  }

  /** Resolves when the kernel says that it is stopped. */
  async standsStill(): Promise<void> {
    const stat = `/proc/${this.#child.pid}/stat`;
    const isStopped = () => / T /.test(readFileSync(stat, 'utf8')) || undefined;
    await until('the worker to stand still', isStopped, 1);
  }

  async stop(): Promise<void> {
    const exited = once(this.#child, 'exit');
    this.#child.send({ kind: 'stop' } satisfies WorkerOrder);
    await exited;
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }
}

function newsOf<K extends WorkerNews['kind']>(
  child: ChildProcess,
  kind: K,
): Promise<Extract<WorkerNews, { kind: K }>> {
  return new Promise((found, fail) => {
    const ended = () => fail(new Error(`A worker ended before it said ${kind}.`));
    const look = (news: WorkerNews) => {
      if (news.kind !== kind) return;
      child.off('message', look);
      child.off('exit', ended);
      found(news as Extract<WorkerNews, { kind: K }>);
    };
    child.on('message', look);
    child.once('exit', ended);
  });
}
