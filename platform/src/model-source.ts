import { join } from 'node:path';
import { createModelSimulator } from '@writ/simulator';
import type { Example } from './example.ts';

/** The model endpoint: a provider named by the environment, or the local simulator. */
export interface ModelSource {
  /** Short description: the models file of the user, which may name any server, or the endpoint of the example. */
  readonly description: string;
  readonly simulated: boolean;
  /** Settings of the meter for this endpoint. */
  readonly env: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/**
 * Starts the simulator unless OPENAI_API_KEY or OPENAI_BASE_URL names a provider (SYS-5). The meter
 * calls both in the same way.
 */
export async function openModelSource(
  env: NodeJS.ProcessEnv,
  { scripts }: Pick<Example, 'scripts'>,
  { script, dataDir }: { readonly script: string; readonly dataDir: string },
): Promise<ModelSource> {
  const file = env.WRIT_MODELS_FILE || undefined;
  const ownModels = file && `set in ${file}`;
  if (env.OPENAI_API_KEY || env.OPENAI_BASE_URL) {
    return {
      description:
        ownModels ??
        `${env.OPENAI_MODEL || 'gpt-4.1-mini'} at ${env.OPENAI_BASE_URL || 'api.openai.com'}`,
      simulated: false,
      // A self-hosted server may need no key, but the SDK always sends one.
      env: { OPENAI_API_KEY: env.OPENAI_API_KEY || 'none' },
      close: () => Promise.resolve(),
    };
  }
  const simulator = await createModelSimulator({
    scripts,
    defaultScript: script,
    requestLog: join(dataDir, 'simulator-requests.jsonl'),
  });
  return {
    description: ownModels ?? 'simulated, no key needed',
    simulated: true,
    env: {
      OPENAI_BASE_URL: simulator.url,
      OPENAI_API_KEY: 'simulated',
      WRIT_SIMULATOR_URL: simulator.url,
      WRIT_SIMULATOR_KEY: 'simulated',
    },
    close: () => simulator.close(),
  };
}
