import { join } from 'node:path';
import { ConfigError, type YamlInput } from '@writ/config';
import { readCatalog } from '@writ/execution-meter';
import { createModelSimulator } from '@writ/simulator';
import type { Example } from './example.ts';

/** The model endpoint: a provider named by the environment or the models file, or the local simulator. */
export interface ModelSource {
  /**
   * Short description: the models file when WRIT_MODELS_FILE is set, or when neither the environment names a provider
   * nor the file has a simulated model; otherwise the endpoint of the environment, or `simulated, no key needed`.
   */
  readonly description: string;
  readonly simulated: boolean;
  /**
   * Aliases of the models that are called at their providers while other models of the file are simulated. Default:
   * none.
   */
  readonly providerModels?: readonly string[];
  /** Settings of the meter for this endpoint. */
  readonly env: Readonly<Record<string, string>>;
  close(): Promise<void>;
}

/** Options of {@link openModelSource}. */
interface ModelSourceOptions {
  readonly script: string;
  readonly dataDir: string;
  /** The models file. Default: WRIT_MODELS_FILE, or models.yaml of the example. */
  readonly models?: YamlInput;
}

/** The model aliases of a models file, grouped into simulated models and models of providers. */
interface ModelServers {
  readonly simulated: readonly string[];
  readonly providers: readonly string[];
}

/** Placeholder for the URL of the simulator, which is not known before the simulator starts. */
const SIMULATOR_URL = 'http://simulator.invalid/v1';

/**
 * Starts the simulator for the models whose `base_url` in the models file is `${OPENAI_BASE_URL}` or
 * `${WRIT_SIMULATOR_URL}`. If OPENAI_API_KEY or OPENAI_BASE_URL is set, starts no simulator, because the models are
 * then called at a provider (SYS-5). The meter calls the simulator in the same way as a provider.
 */
export async function openModelSource(
  env: NodeJS.ProcessEnv,
  { folder, scripts }: Pick<Example, 'folder' | 'scripts'>,
  { script, dataDir, models }: ModelSourceOptions,
): Promise<ModelSource> {
  const ownFile = env.WRIT_MODELS_FILE || undefined;
  const file = models ?? ownFile ?? join(folder, 'models.yaml');
  const inFile = `set in ${typeof file === 'string' ? file : file.file}`;
  if (env.OPENAI_API_KEY || env.OPENAI_BASE_URL) {
    const endpoint = `${env.OPENAI_MODEL || 'gpt-4.1-mini'} at ${env.OPENAI_BASE_URL || 'api.openai.com'}`;
    return {
      description: ownFile === undefined ? endpoint : inFile,
      ...AT_PROVIDERS,
      env: providerVariables(env),
    };
  }
  const { simulated, providers } = modelServers(file, env);
  if (simulated.length === 0) return { description: inFile, ...AT_PROVIDERS, env: {} };
  const simulator = await createModelSimulator({
    scripts,
    defaultScript: script,
    requestLog: join(dataDir, 'simulator-requests.jsonl'),
  });
  return {
    description: ownFile === undefined ? 'simulated, no key needed' : inFile,
    simulated: true,
    providerModels: providers,
    env: simulatorVariables(simulator.url),
    close: () => simulator.close(),
  };
}

const AT_PROVIDERS = { simulated: false, close: () => Promise.resolve() };

/**
 * Returns the variables that make the models of a models file use the simulator at `url`. The simulator accepts any
 * key.
 */
export function simulatorVariables(url = SIMULATOR_URL): Readonly<Record<string, string>> {
  return {
    OPENAI_BASE_URL: url,
    OPENAI_API_KEY: 'simulated',
    WRIT_SIMULATOR_URL: url,
    WRIT_SIMULATOR_KEY: 'simulated',
  };
}

/**
 * Returns the variables for models at their providers. A self-hosted server may need no key, but the SDK always sends
 * one.
 */
export function providerVariables(env: NodeJS.ProcessEnv): Readonly<Record<string, string>> {
  return { OPENAI_API_KEY: env.OPENAI_API_KEY || 'none' };
}

/** Whether at least one model of the file is simulated (SYS-5). */
export function isSimulated(models: YamlInput, env: NodeJS.ProcessEnv): boolean {
  if (env.OPENAI_API_KEY || env.OPENAI_BASE_URL) return false;
  return modelServers(models, env).simulated.length > 0;
}

/** Returns the aliases of a models file; none for an invalid file, which checkFiles reports. */
function modelServers(models: YamlInput, env: NodeJS.ProcessEnv): ModelServers {
  const variables = { ...env, OPENAI_BASE_URL: SIMULATOR_URL, WRIT_SIMULATOR_URL: SIMULATOR_URL };
  try {
    const entries = readCatalog(models, variables).catalog.list(undefined);
    const isAtSimulator = (baseUrl: string) => baseUrl.startsWith(SIMULATOR_URL);
    const aliasesOf = (wanted: boolean) =>
      entries.flatMap(({ alias, baseUrl }) => (isAtSimulator(baseUrl) === wanted ? [alias] : []));
    return { simulated: aliasesOf(true), providers: aliasesOf(false) };
  } catch (error) {
    if (error instanceof ConfigError) return { simulated: [], providers: [] };
    throw error;
  }
}
