import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { AGENT_WORKER_DEFAULTS } from '@writ/agent-worker';
import type { TestPlatform } from '@writ/testing/platform';
import { until } from '../e2e/scripted/until.ts';
import type { WorkerCommand, WorkerMessage, WorkerSettings } from './frozen-worker-child.ts';
import { sharedStoreFile } from './worker-database.ts';

const CHILD = fileURLToPath(new URL('frozen-worker-child.ts', import.meta.url));
const LEASE_MS = 400;

/** A worker process that can be frozen; two workers share one store. */
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
        store: { dialect: 'sqlite', file: sharedStoreFile(dataDir) },
        workerId,
        leaseTtlMs: LEASE_MS,
        // The other worker, which did not receive the delivery, claims the agent only after its lease has expired.
        pollMs: LEASE_MS / 2,
        drainMs: 500,
      },
    };
    const child = fork(CHILD, [JSON.stringify(settings)], { execArgv: [] });
    const { address } = await nextMessage(child, 'started');
    return new ForkedWorker(child, address);
  }

  next<K extends WorkerMessage['kind']>(kind: K): Promise<Extract<WorkerMessage, { kind: K }>> {
    return nextMessage(this.#child, kind);
  }

  /** Sends a command; resolves with the number of transactions since the previous command. */
  async send(command: Extract<WorkerCommand, { kind: 'freeze' }>) {
    const counted = this.next('count');
    this.#child.send(command);
    // The child may have frozen itself late, after the round was over.
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

  /** Resolves when the kernel reports that the process is stopped. */
  async untilStopped(): Promise<void> {
    const stat = `/proc/${this.#child.pid}/stat`;
    const isStopped = () => / T /.test(readFileSync(stat, 'utf8')) || undefined;
    await until('the worker to stop', isStopped, 1);
  }

  async stop(): Promise<void> {
    const exited = once(this.#child, 'exit');
    this.#child.send({ kind: 'stop' } satisfies WorkerCommand);
    await exited;
  }

  kill(): void {
    this.#child.kill('SIGKILL');
  }
}

function nextMessage<K extends WorkerMessage['kind']>(
  child: ChildProcess,
  kind: K,
): Promise<Extract<WorkerMessage, { kind: K }>> {
  return new Promise((resolve, reject) => {
    const ended = () => reject(new Error(`A worker exited before it sent ${kind}.`));
    const receive = (message: WorkerMessage) => {
      if (message.kind !== kind) return;
      child.off('message', receive);
      child.off('exit', ended);
      resolve(message as Extract<WorkerMessage, { kind: K }>);
    };
    child.on('message', receive);
    child.once('exit', ended);
  });
}
