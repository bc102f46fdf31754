import { join } from 'node:path';
import { InvalidRequestError } from '@writ/kernel';
import { createDataFolder } from '@writ/service';
import { checkStart } from '../check/check-start.ts';
import { type PlatformOptions, readPlatformConfig, type SettingsDocuments } from '../config.ts';
import { isSimulated, type ModelSource, openModelSource } from '../model-source.ts';
import { type Platform, startPlatform } from '../platform.ts';
import type { Project } from './load-project.ts';

/** Options of {@link openProject}. */
export type ProjectOptions = Partial<
  Pick<PlatformOptions, 'dataDir' | 'freePorts' | 'logStream' | 'spanProcessors'>
> & {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Texts to use in place of the files, which are then not reloaded. */
  readonly documents?: SettingsDocuments;
  /** Script of the simulated model. Default: that of the project. */
  readonly script?: string;
};

/** A running project. */
export interface OpenProject {
  readonly platform: Platform;
  readonly model: ModelSource;
  readonly dataDir: string;
  close(): Promise<void>;
}

/**
 * Settings that use free ports for all internal listeners, so that two projects can run at the same time if one of them
 * sets WRIT_EDGE_PORT.
 */
const FREE_INTERNAL_PORTS = Object.fromEntries(
  ['SUPERVISOR', 'SPAWN_BUDGET', 'EXECUTION_METER', 'TOOL_GATEWAY', 'AGENT_WORKER'].map((name) => [
    `WRIT_${name}_PORT`,
    '0',
  ]),
);

/**
 * Starts the embedded platform on a project. The data is stored in `dataDir`, by default `.writ` in the project folder.
 * When OPENAI_API_KEY or OPENAI_BASE_URL is set, all models are called at their providers. Otherwise, the scripts of
 * the project simulate the models whose `base_url` in the models file refers to the variable OPENAI_BASE_URL or
 * WRIT_SIMULATOR_URL.
 *
 * @throws InvalidRequestError SCRIPT_MISSING for a simulated model without a script
 * @throws ConfigError naming every problem in the files and in the references between them; with `documents`,
 *   references between files are not checked
 * @throws WritError or ConfigError, one sentence that names the cause; nothing is left running
 * @example
 * ```ts
 * import { createWritClient } from '@writ/client';
 * import { loadProject, openProject } from 'writ';
 *
 * const { platform, close } = await openProject(loadProject('.'), { env: process.env, freePorts: true });
 * const client = createWritClient({ baseUrl: platform.edgeUrl, apiKey: platform.apiKey });
 * const { agents } = await client.runs.listAgents({});
 * console.log(agents.map(({ name }) => name));
 * await close();
 * ```
 */
export async function openProject(project: Project, options: ProjectOptions): Promise<OpenProject> {
  const dataDir = options.dataDir ?? join(project.folder, '.writ');
  const env = { ...project.env, ...options.env };
  const models = options.documents?.models ?? (env.WRIT_MODELS_FILE || project.files.models);
  const script = options.script ?? project.script;
  if (isSimulated(models, env) && !project.scripts.some(({ name }) => name === script))
    throw new InvalidRequestError(
      'SCRIPT_MISSING',
      `OPENAI_API_KEY is not set, and simulator/ has no script ${script || 'default'}.yaml for the simulated model. Set the key in .env, or add the script.`,
      { field: 'OPENAI_API_KEY' },
    );
  createDataFolder(dataDir);
  const model = await openModelSource(env, project, { script, dataDir, models });
  try {
    const config = readPlatformConfig(
      { ...FREE_INTERNAL_PORTS, ...env },
      { ...options, example: project, model, dataDir },
    );
    // Documents are texts that writ dev has checked.
    if (options.documents === undefined) await checkStart(config);
    const platform = await startPlatform(
      options.documents === undefined ? config : { ...config, documents: options.documents },
    );
    return {
      platform,
      model,
      dataDir,
      close: () => platform.stop().finally(() => model.close()),
    };
  } catch (error) {
    await model.close();
    throw error;
  }
}
