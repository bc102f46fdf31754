import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { parseEnv } from 'node:util';
import { ConfigError, type DocumentText } from '@writ/config';
import { NotFoundError } from '@writ/kernel';
import { loadScripts, type Script } from '@writ/simulator';
import type { SettingsFiles } from '../check/check-files.ts';
import { AGENT_MODULES, type SettingsDocuments } from '../config.ts';

/** A folder with the configuration files of a platform, which are found by their names. */
export interface Project {
  /** Name of the folder. */
  readonly name: string;
  /** Absolute path. */
  readonly folder: string;
  readonly files: SettingsFiles & { readonly agents: string; readonly tools: string };
  /** Scripts of the model simulator; none without a folder simulator/. */
  readonly scripts: readonly Script[];
  /** The script for models that name none: `default`, or else the first. */
  readonly script: string;
  /** Variables of the file .env. */
  readonly env: Readonly<Record<string, string | undefined>>;
}

const REQUIRED = ['agents.yaml', 'policy.yaml', 'tools.yaml', 'models.yaml'] as const;
const SCRIPTS = 'simulator';

/**
 * Finds the files of a project: agents.yaml, policy.yaml, tools.yaml and models.yaml, and, where they exist, the first
 * of agents.ts, agents.js, src/agents.ts and src/agents.js, the scripts in simulator/ and .env.
 *
 * @throws NotFoundError PROJECT_INCOMPLETE naming the missing files
 * @throws ConfigError when a script is invalid
 * @example
 * ```ts
 * import { loadProject } from 'writ';
 *
 * const { name, files, scripts } = loadProject('.');
 * console.log(name, files.agents, scripts.length);
 * ```
 */
export function loadProject(path: string): Project {
  const folder = resolve(path);
  const missing = REQUIRED.filter((file) => !existsSync(join(folder, file)));
  if (missing.length > 0)
    throw new NotFoundError(
      'PROJECT_INCOMPLETE',
      `${folder} has no ${missing.join(', ')}. Run writ in the folder of a project, or create one with writ init.`,
      { field: 'folder' },
    );
  const at = (file: string) => join(folder, file);
  const module = AGENT_MODULES.find((file) => existsSync(at(file)));
  const scripts = scriptsIn(at(SCRIPTS));
  const script = scripts.find(({ name }) => name === 'default') ?? scripts[0];
  return {
    name: basename(folder),
    folder,
    files: {
      agents: at('agents.yaml'),
      policy: at('policy.yaml'),
      tools: at('tools.yaml'),
      models: at('models.yaml'),
      agentModules: module === undefined ? [] : [at(module)],
    },
    scripts,
    script: script?.name ?? '',
    env: existsSync(at('.env')) ? parseEnv(readFileSync(at('.env'), 'utf8')) : {},
  };
}

/** Reads the settings files of a project. @throws ConfigError when a file cannot be read */
export function documentsOf({ files }: Pick<Project, 'files'>): SettingsDocuments {
  const read = (file: string): DocumentText => {
    try {
      return { file, text: readFileSync(file, 'utf8') };
    } catch (cause) {
      throw new ConfigError(file, [`${file} cannot be read.`], { cause });
    }
  };
  const { agents, policy, tools, models } = files;
  return { agents: read(agents), policy: read(policy), tools: read(tools), models: read(models) };
}

function scriptsIn(folder: string): Script[] {
  const isThere = existsSync(folder) && readdirSync(folder).some((file) => /\.ya?ml$/.test(file));
  return isThere ? loadScripts(folder) : [];
}
