import OpenAI from 'openai';
import type { ModelEntry } from '../../domain/catalog/model.ts';

const MAX_CLIENTS = 256;

/** SDK clients by provider and key; calls to one origin share connections. */
export class OpenAiClients {
  readonly #clients = new Map<string, OpenAI>();

  /** Returns the client for the provider of a model. */
  for({ baseUrl }: ModelEntry, apiKey: string | undefined): OpenAI {
    const name = `${baseUrl} ${apiKey ?? ''}`;
    const known = this.#clients.get(name);
    if (known !== undefined) return known;
    if (this.#clients.size >= MAX_CLIENTS) this.#clients.clear();
    const client = new OpenAI({
      baseURL: baseUrl,
      // The SDK requires a key; servers without authentication ignore it.
      apiKey: apiKey ?? 'none',
      adminAPIKey: null,
      organization: null,
      project: null,
      webhookSecret: null,
      // Retries of the SDK would not be metered (EM-8).
      maxRetries: 0,
      logLevel: 'off',
    });
    this.#clients.set(name, client);
    return client;
  }
}
