import { omitUndefined } from '@writ/kernel';
import type { ModelEntry } from '../domain/catalog/catalog.ts';
import type { NativeChat } from '../domain/chat/chat.ts';

/** What a client that names no version of the API gets. */
const ANTHROPIC_VERSION = '2023-06-01';

/** What the headers of a request to a provider depend on. */
interface ProviderRequest {
  readonly model: ModelEntry;
  readonly apiKey: string | undefined;
  readonly native: NativeChat | undefined;
}

/** The key of a provider of Anthropic's API, and the headers that the client has for it. */
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
