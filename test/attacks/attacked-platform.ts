import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createWritClient, type WritClient } from '@writ/client';
import { API_KEYS_FILE, openApiKeys } from '@writ/identity';
import { newId } from '@writ/kernel';
import { StepsHarness } from '../load/steps/steps-harness.ts';
import type { AttackTarget } from './attacks.ts';
import { type HostileServer, startHostileServer } from './hostile-server.ts';
import { hostileSettings } from './hostile-settings.ts';

/** Resident memory that no attack may exceed. */
export const MEMORY_LIMIT_MB = 1_024;
/** Heap limit of the process, below its memory limit. */
const HEAP_LIMIT_MB = 768;
/** Steps of an honest run. */
const STEPS = 2;
/** The platform in a process with limited memory, with an honest tenant, an attacker, and an operator. */
export class AttackedPlatform implements AttackTarget {
  readonly hostile: HostileServer;
  readonly #harness: StepsHarness;
  readonly #attackerKey: string;

  private constructor(harness: StepsHarness, hostile: HostileServer, attackerKey: string) {
    this.#harness = harness;
    this.hostile = hostile;
    this.#attackerKey = attackerKey;
  }

  static async start(): Promise<AttackedPlatform> {
    const hostile = await startHostileServer();
    const { agents, ...extra } = hostileSettings(hostile.url, 'STEPS_KEY');
    const harness = await StepsHarness.start({
      counts: [STEPS],
      flags: [`--max-old-space-size=${HEAP_LIMIT_MB}`],
      agents,
      extra,
    });
    const apiKeys = openApiKeys({ file: join(harness.dataDir, API_KEYS_FILE) });
    const roles = ['caller', 'approver'] as const;
    const mallory = { tenant: 'mallory', subject: 'mallory', roles: [...roles] };
    return new AttackedPlatform(harness, hostile, await apiKeys.create(mallory));
  }

  /** The attacker's key and a client with it. */
  get attacker(): { readonly key: string; readonly client: WritClient } {
    const key = this.#attackerKey;
    const options = { baseUrl: this.edgeUrl, apiKey: key, retryStarts: false };
    return { key, client: createWritClient(options) };
  }

  get edgeUrl(): string {
    return this.#harness.started.edgeUrl;
  }

  /** Addresses of the listeners for services. */
  get internal(): readonly string[] {
    return Object.values(this.#harness.started.addresses);
  }

  /** Runs an agent of the honest tenant to its approved answer. */
  async runHonestly(): Promise<void> {
    await this.#harness.count(STEPS, 'Count.');
  }

  /** Halts and resumes a tenant; returns the milliseconds until the halt was in force. */
  async halt(): Promise<number> {
    const { control } = this.#harness.client;
    const scope = { kind: { case: 'tenant', value: 'idle' } } as const;
    const startedAt = performance.now();
    const { halt } = await control.halt({ requestId: newId('req'), scope, reason: 'An attack.' });
    const ms = performance.now() - startedAt;
    await control.resume({ requestId: newId('req'), haltId: halt?.haltId ?? '' });
    return ms;
  }

  /** The highest resident memory of the process so far, MB; undefined where the system does not report it. */
  peakMemoryMb(): number | undefined {
    try {
      const status = readFileSync(`/proc/${this.#harness.pid}/status`, 'utf8');
      return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) / 1_024;
    } catch {
      return undefined;
    }
  }

  /** Kills the platform with SIGKILL and restarts it on the same data. */
  async restart(): Promise<void> {
    await this.#harness.kill();
    await this.#harness.startPlatform();
  }

  async close(): Promise<void> {
    await this.#harness.close();
    await this.hostile.close();
  }
}
