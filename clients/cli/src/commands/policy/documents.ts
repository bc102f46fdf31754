import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ConfigError, loadYaml } from '@writ/config';
import type { JsonObject } from '@writ/kernel';
import { loadPolicy, type Policy, type ToolSchemas } from '@writ/policy';

/** The part of a tools file that rules are checked against. */
const TOOLS_SCHEMA = {
  type: 'object',
  properties: {
    tools: {
      type: 'array',
      items: {
        type: 'object',
        properties: { name: { type: 'string' }, input_schema: { type: 'object' } },
        required: ['name'],
      },
    },
  },
};

/** Reads a policy, and checks it against a tools file if one is given; throws PolicyError or ConfigError. */
export async function readPolicy(file: string, toolsFile: string | undefined): Promise<Policy> {
  const toolSchemas = toolsFile === undefined ? undefined : await readTools(toolsFile);
  return loadPolicy(await readText(file), { file, toolSchemas });
}

/** The text of a file; throws ConfigError when it cannot be read. */
export async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'unreadable';
    throw new ConfigError(file, [`${file} cannot be read (${code}).`], { cause: error });
  }
}

/** The policy files of a folder. */
export interface PolicyFolder {
  readonly policy: string;
  /** Undefined when there is no `tools.yaml`. */
  readonly tools: string | undefined;
  /** Files with names that end in `-tests.yaml` or `-tests.yml`, sorted. */
  readonly tables: readonly string[];
}

/** Finds `policy.yaml`, `tools.yaml` and the tables of a folder; throws ConfigError when it cannot be read. */
export async function readFolder(folder: string): Promise<PolicyFolder> {
  let names: readonly string[];
  try {
    names = await readdir(folder);
  } catch (error) {
    throw new ConfigError(folder, [`${folder} is not a readable folder.`], { cause: error });
  }
  return {
    policy: join(folder, 'policy.yaml'),
    tools: names.includes('tools.yaml') ? join(folder, 'tools.yaml') : undefined,
    tables: names
      .filter((name) => /-tests\.ya?ml$/.test(name))
      .sort()
      .map((name) => join(folder, name)),
  };
}

async function readTools(file: string): Promise<ToolSchemas> {
  const text = await readText(file);
  const { value } = loadYaml<{
    readonly tools?: readonly { readonly name: string; readonly input_schema?: JsonObject }[];
  }>({ text, file }, TOOLS_SCHEMA);
  const schemas = (value.tools ?? []).map(
    ({ name, input_schema: schema = {} }) => [name, schema] as const,
  );
  return Object.fromEntries(schemas);
}
