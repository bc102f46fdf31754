import OpenAI from 'openai';
import type { ModelEntry } from '../../domain/catalog/model.ts';

const MAX_CLIENTS = 256;

/** The SDK's clients, one for a provider and key; connections are shared by all calls to one origin. */
export class OpenAiClients {
  readonly #clients = new Map<string, OpenAI>();

  /** The client for a model's provider. */
  for({ baseUrl }: ModelEntry, apiKey: string | undefined): OpenAI {
    const name = `${baseUrl} ${apiKey ?? ''}`;
    const known = this.#clients.get(name);
    if (known !== undefined) return known;
    if (this.#clients.size >= MAX_CLIENTS) this.#clients.clear();
    const client = new OpenAI({
      baseURL: baseUrl,
      // Servers without keys ignore it; the SDK insists on one.
      apiKey: apiKey ?? 'none',
      adminAPIKey: null,
      organization: null,
      project: null,
      webhookSecret: null,
      // Its retries would be billed unseen (EM-8).
      maxRetries: 0,
      logLevel: 'off',
    });
    this.#clients.set(name, client);
    return client;
  }
}
