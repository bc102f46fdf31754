import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createWritClient, type WritClient } from '@writ/client';
import { API_KEYS_FILE, openApiKeys } from '@writ/identity';
import { newId } from '@writ/kernel';
import { StepsHarness } from '../load/steps/steps-harness.ts';
import { type HostileServer, startHostileServer } from './hostile-server.ts';

/** Resident memory that no attack may exceed. */
export const MEMORY_LIMIT_MB = 1_024;
/** Heap limit of the process, below that of its memory. */
const HEAP_LIMIT_MB = 768;
/** Steps of an honest run. */
const STEPS = 2;
/** Models of the attacker, served by the hostile server. */
const MODELS = ['bomb', 'endless', 'pattern', 'nested'] as const;

/** The platform in a process with limited memory, with an honest tenant, an attacker, and an operator. */
export class AttackedPlatform {
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
    const harness = await StepsHarness.start({
      counts: [STEPS],
      flags: [`--max-old-space-size=${HEAP_LIMIT_MB}`],
      agents: MODELS.map((model) => ({
        name: `${model}-agent`,
        kind: 'react',
        instructions: 'Attack.',
        model: { model },
        tools: ['mail'],
      })),
      extra: {
        models: Object.fromEntries(
          MODELS.map((model) => [
            model,
            {
              base_url: `${hostile.url}/${model}/v1`,
              api_key_env: 'STEPS_KEY',
              model,
              priced_as: 'gpt-4.1-mini',
              context_window: 1_000_000,
              max_output_tokens: 4_096,
              timeout: '10s',
              max_retries: 0,
            },
          ]),
        ),
        tools: [
          {
            name: 'mail',
            description: 'Sends a mail.',
            input_schema: {
              type: 'object',
              properties: { email: { type: 'string', pattern: '^([a-zA-Z0-9]+)+@example\\.com$' } },
              required: ['email'],
            },
            side_effect: 'idempotent',
            risk: 0,
            source: 'mail',
          },
        ],
        sources: {
          mail: { kind: 'local', module: fileURLToPath(new URL('mail-tool.ts', import.meta.url)) },
          hostile: { kind: 'mcp', url: `${hostile.url}/mcp` },
        },
      },
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

  /** kill -9, and another start on the same data. */
  async restart(): Promise<void> {
    await this.#harness.kill();
    await this.#harness.startPlatform();
  }

  async close(): Promise<void> {
    await this.#harness.close();
    await this.hostile.close();
  }
}
