import { omitUndefined } from '@writ/kernel';
import type { ModelEntry } from '../domain/catalog/catalog.ts';
import type { NativeChat } from '../domain/chat/chat.ts';

/** Default API version, sent if the client does not set one. */
const ANTHROPIC_VERSION = '2023-06-01';

/** A request to a provider: its model, key and native content. */
interface ProviderRequest {
  readonly model: ModelEntry;
  readonly apiKey: string | undefined;
  readonly native: NativeChat | undefined;
}

/**
 * Returns the headers of a request to a provider with Anthropic's API: the key, the API version, and the headers that
 * the client sent for the provider, which may set another version. Returns no headers for other APIs.
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
