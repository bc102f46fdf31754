import { omitUndefined } from '@writ/kernel';
import type { ModelEntry } from '../domain/catalog/catalog.ts';
import type { NativeChat } from '../domain/chat/chat.ts';

/** The version of the API for a client that names none. */
const ANTHROPIC_VERSION = '2023-06-01';

/** A request to a provider: its model, key and native content. */
interface ProviderRequest {
  readonly model: ModelEntry;
  readonly apiKey: string | undefined;
  readonly native: NativeChat | undefined;
}

/**
 * The headers of a request to a provider with Anthropic's API: key, version, and the headers that the client sent for
 * the provider, which may name another version. None for another API.
 */
export function providerHeaders({
  model,
  apiKey,
  native,
}: ProviderRequest): Record<string, string> {
  if (model.api !== 'anthropic') return {};
  return {
    ...omitUndefined({ 'x-api-key': apiKey }),
    'anthropic-version': ANTHROPIC_VERSION,
    ...native?.headers,
  };
}
