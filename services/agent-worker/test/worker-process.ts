import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { waitForLine } from '@writ/testing/processes';
import type { World } from './world.ts';

const CHILD = fileURLToPath(new URL('./worker-child.ts', import.meta.url));

/** A worker in a separate process that uses the store of a world; tests kill this process. */
export class WorkerProcess {
  readonly address: string;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, address: string) {
    this.#child = child;
    this.address = address;
  }

  static async start(world: World): Promise<WorkerProcess> {
    const peers = ['supervisor', 'spawn-budget', 'execution-meter', 'tool-gateway'] as const;
    const addresses = Object.fromEntries(peers.map((name) => [name, world.addressOf(name)]));
    const settings = JSON.stringify({ config: world.config(), addresses });
    const child = spawn(process.execPath, [CHILD, settings], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    const [address] = await waitForLine(child, /\S+/);
    return new WorkerProcess(child, address);
  }

  /** Sends SIGKILL. */
  async kill(): Promise<void> {
    const exited = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exited;
  }
}
