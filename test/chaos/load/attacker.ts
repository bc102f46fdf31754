import { join } from 'node:path';
import { createWritClient, type WritClient } from '@writ/client';
import { API_KEYS_FILE, openApiKeys } from '@writ/identity';
import { isWritError, newId } from '@writ/kernel';
import type { DistributedPlatform } from '@writ/testing/distributed';
import type { AttackTarget } from '../../attacks/attacks.ts';
import type { HostileServer } from '../../attacks/hostile-server.ts';
import type { HostileModel } from '../../attacks/hostile-settings.ts';
import { RetryingClient } from './retrying-client.ts';

/** A tenant that attacks the platform, with models and tools under its control. */
export class Attacker {
  readonly #platform: DistributedPlatform;
  readonly #hostile: HostileServer;
  readonly #key: string;
  readonly #clients: readonly WritClient[];
  readonly #signal: AbortSignal;

  private constructor(
    platform: DistributedPlatform,
    hostile: HostileServer,
    key: string,
    signal: AbortSignal,
  ) {
    this.#platform = platform;
    this.#hostile = hostile;
    this.#key = key;
    this.#signal = signal;
    this.#clients = platform.edgeUrls.map((baseUrl) => createWritClient({ baseUrl, apiKey: key }));
  }

  /** Creates the API key of the attacker. */
  static async enter(
    platform: DistributedPlatform,
    hostile: HostileServer,
    signal: AbortSignal,
  ): Promise<Attacker> {
    const apiKeys = openApiKeys({ file: join(platform.dataDir, API_KEYS_FILE) });
    const identity = {
      tenant: 'mallory',
      subject: 'mallory',
      roles: ['caller', 'approver'] as const,
    };
    const key = await apiKeys.create({ ...identity, roles: [...identity.roles] });
    return new Attacker(platform, hostile, key, signal);
  }

  /** Returns an attack target with one public listener and one listener for services. */
  target(choose: <T>(from: readonly T[]) => T): AttackTarget {
    const edgeUrl = choose(this.#platform.edgeUrls);
    const client = createWritClient({ baseUrl: edgeUrl, apiKey: this.#key, retryStarts: false });
    return {
      edgeUrl,
      internal: [choose(this.#platform.replicas).address],
      attacker: { key: this.#key, client },
      hostile: this.#hostile,
    };
  }

  /** Starts a run of an agent with a hostile model. */
  async startRun(model: HostileModel): Promise<string> {
    const request = { requestId: newId('req'), agent: `${model}-agent`, goal: 'Attack.' };
    const { run } = await this.#call(({ runs }, to) => runs.startRun(request, to));
    return run?.runId ?? '';
  }

  /** Cancels a run that has not ended. */
  async cancelRun(runId: string): Promise<void> {
    const request = { requestId: newId('req'), runId };
    try {
      await this.#call(({ runs }, to) => runs.cancelRun(request, to));
    } catch (error) {
      if (!isWritError(error) || error.kind !== 'failed_precondition') throw error;
    }
  }

  async #call<T>(
    work: (client: WritClient, options: { readonly signal: AbortSignal }) => Promise<T>,
  ): Promise<T> {
    return await new RetryingClient(this.#clients, 0).call(work, this.#signal);
  }
}
