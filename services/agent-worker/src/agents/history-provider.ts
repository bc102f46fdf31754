import { canonicalDigest, type HistoryProvider, InvalidRequestError } from '@writ/kernel';
import type { AgentManifest } from '../domain/agent/manifest.ts';
import type { AgentModules } from './load-modules.ts';
import { optionsReader } from './options.ts';

type Settings = Pick<AgentManifest, 'history'>;

/**
 * Returns a function that returns the history provider of a manifest, or undefined when the worker's own store is used
 * (AG-8). Equal settings share one provider. The returned function throws InvalidRequestError UNKNOWN_HISTORY_PROVIDER
 * or INVALID_MIDDLEWARE_OPTIONS.
 */
export function historyFinder(
  modules: Pick<AgentModules, 'historyProviders'>,
): (manifest: Settings) => HistoryProvider | undefined {
  const created = new Map<string, HistoryProvider>();
  return ({ history }) => {
    if (history === undefined) return undefined;
    const key = canonicalDigest(history);
    const provider = created.get(key) ?? createProvider(history, modules);
    created.set(key, provider);
    return provider;
  };
}

function createProvider(
  history: NonNullable<Settings['history']>,
  { historyProviders }: Pick<AgentModules, 'historyProviders'>,
): HistoryProvider {
  const { provider, options } = history;
  const definition = historyProviders.get(provider);
  if (definition === undefined) {
    const known = [...historyProviders.keys()].join(', ') || 'none';
    throw new InvalidRequestError(
      'UNKNOWN_HISTORY_PROVIDER',
      `history.provider: "${provider}" does not exist. Available history providers: ${known}.`,
      { field: 'history.provider' },
    );
  }
  const { options: schema = { properties: {} } } = definition;
  return definition.create(optionsReader<never>(provider, schema)(options));
}
