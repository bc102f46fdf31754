import { readdirSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import { ConfigError, type DataPath, loadYaml } from '@writ/config';
import { faultsOf } from './placeholder.ts';
import type { Reply, Script } from './script.ts';
import { SCRIPT_SCHEMA } from './script-schema.ts';

/** Says where `path` of a script stands, for messages. */
type Locate = (path: DataPath) => string;

/**
 * Reads one script file.
 * @throws ConfigError with file, line and column of everything that is wrong
 */
export function loadScript(file: string): Script {
  const { value, locate } = loadYaml<Script>(file, SCRIPT_SCHEMA);
  const problems = problemsOf(value, locate);
  const stem = basename(file, extname(file));
  if (value.name !== stem) {
    problems.unshift(`${locate(['name'])}: name must be ${stem}, as the file is called.`);
  }
  if (problems.length > 0) throw new ConfigError(file, problems);
  return value;
}

/**
 * Reads every `*.yaml` of a folder, sorted by name.
 * @throws ConfigError listing what is wrong in all of them
 */
export function loadScripts(directory: string): Script[] {
  const problems: string[] = [];
  const scripts: Script[] = [];
  const files = readdirSync(directory).filter((file) => /\.ya?ml$/.test(file));
  if (files.length === 0) problems.push(`${directory} holds no script (*.yaml).`);
  for (const file of files.sort()) {
    try {
      scripts.push(loadScript(join(directory, file)));
    } catch (error) {
      if (!(error instanceof ConfigError)) throw error;
      problems.push(...error.problems);
    }
  }
  if (problems.length > 0) throw new ConfigError(directory, problems);
  return scripts;
}

/**
 * Checks scripts that were written as code, and that no two share a name.
 * @throws ConfigError naming script and entry
 */
export function checkScripts(scripts: readonly Script[]): void {
  const problems = scripts.flatMap((script) =>
    problemsOf(script, (path) => `${script.name}.${path.join('.')}`),
  );
  const names = new Set<string>();
  for (const { name } of scripts) {
    if (names.has(name)) problems.push(`Two scripts are called ${name}.`);
    names.add(name);
  }
  if (problems.length > 0) throw new ConfigError('The scripts', problems);
}

/** What a schema cannot see: how many answers a reply has, and malformed placeholders. */
function problemsOf(script: Script, locate: Locate): string[] {
  const names = Object.keys(script.values ?? {});
  const ofValues = Object.entries(script.values ?? {}).flatMap(([name, value]) =>
    faultsOf(value, []).map((fault) => `${locate(['values', name])}: ${fault}`),
  );
  const ofEntries = script.entries.flatMap(({ reply }, index) => {
    const at = locate(['entries', index, 'reply']);
    const problems = faultsOf(reply, names).map((fault) => `${at}: ${fault}`);
    const fault = answerFault(reply);
    return fault === undefined ? problems : [`${at}: ${fault}`, ...problems];
  });
  return [...ofValues, ...ofEntries];
}

function answerFault(reply: Reply): string | undefined {
  const answers = (['json', 'text', 'tool_calls', 'error'] as const).filter(
    (key) => reply[key] !== undefined,
  );
  const [first, second, third] = answers;
  if (first === undefined) {
    return reply.garbage === undefined
      ? 'a reply needs one of json, text, tool_calls, error and garbage.'
      : undefined;
  }
  if (second === undefined) {
    return first === 'error' && reply.garbage !== undefined
      ? 'a reply cannot have both error and garbage.'
      : undefined;
  }
  if (first === 'text' && second === 'tool_calls' && third === undefined) return undefined;
  return `a reply cannot have both ${first} and ${second}.`;
}
