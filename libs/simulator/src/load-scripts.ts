import { readdirSync } from 'node:fs';
import { basename, extname, join } from 'node:path';
import { ConfigError, type DataPath, loadYaml } from '@writ/config';
import { placeholderProblems } from './placeholder.ts';
import type { Reply, Script } from './script.ts';
import { SCRIPT_SCHEMA } from './script-schema.ts';

/** Formats the location of `path` in a script for messages. */
type Locate = (path: DataPath) => string;

/**
 * Reads a script file. The name of the script must be that of the file, without its extension.
 * @throws ConfigError with file, line and column of every problem
 * @example
 * ```ts
 * import { createModelSimulator, loadScript } from '@writ/simulator';
 *
 * const simulator = await createModelSimulator({ scripts: [loadScript('simulator/late-order.yaml')] });
 * ```
 */
export function loadScript(file: string): Script {
  const { value, locate } = loadYaml<Script>(file, SCRIPT_SCHEMA);
  const problems = problemsOf(value, locate);
  const stem = basename(file, extname(file));
  if (value.name !== stem) {
    problems.unshift(`${locate(['name'])}: name must be ${stem}, the name of the file.`);
  }
  if (problems.length > 0) throw new ConfigError(file, problems);
  return value;
}

/**
 * Reads every `*.yaml` and `*.yml` of a folder, sorted by name.
 * @throws ConfigError listing the problems of all files; the file system's error when the folder cannot be read
 * @example
 * ```ts
 * import { loadScripts } from '@writ/simulator';
 *
 * for (const { name, expect } of loadScripts('simulator')) console.log(name, expect?.stop_reason);
 * ```
 */
export function loadScripts(directory: string): Script[] {
  const problems: string[] = [];
  const scripts: Script[] = [];
  const files = readdirSync(directory).filter((file) => /\.ya?ml$/.test(file));
  if (files.length === 0) problems.push(`${directory} contains no script (*.yaml or *.yml).`);
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
 * Validates scripts that are defined in code and checks that their names are unique.
 * @throws ConfigError naming the script and the entry of every problem
 */
export function checkScripts(scripts: readonly Script[]): void {
  const problems = scripts.flatMap((script) =>
    problemsOf(script, (path) => `${script.name}.${path.join('.')}`),
  );
  const names = new Set<string>();
  for (const { name } of scripts) {
    if (names.has(name)) problems.push(`Script name "${name}" is not unique.`);
    names.add(name);
  }
  if (problems.length > 0) throw new ConfigError('The scripts', problems);
}

/** Checks what the schema cannot express: the number of answers in a reply, and placeholders. */
function problemsOf(script: Script, locate: Locate): string[] {
  const names = Object.keys(script.values ?? {});
  const ofValues = Object.entries(script.values ?? {}).flatMap(([name, value]) =>
    placeholderProblems(value, []).map((problem) => `${locate(['values', name])}: ${problem}`),
  );
  const ofEntries = script.entries.flatMap(({ reply }, index) => {
    const at = locate(['entries', index, 'reply']);
    const problems = placeholderProblems(reply, names).map((problem) => `${at}: ${problem}`);
    const problem = answerProblem(reply);
    return problem === undefined ? problems : [`${at}: ${problem}`, ...problems];
  });
  return [...ofValues, ...ofEntries];
}

function answerProblem(reply: Reply): string | undefined {
  const answers = (['json', 'text', 'tool_calls', 'error'] as const).filter(
    (key) => reply[key] !== undefined,
  );
  const [first, second, third] = answers;
  if (first === undefined) {
    return reply.garbage === undefined
      ? 'a reply requires one of json, text, tool_calls, error and garbage.'
      : undefined;
  }
  if (second === undefined) {
    return first === 'error' && reply.garbage !== undefined
      ? 'a reply cannot have both error and garbage.'
      : undefined;
  }
  // A reply can have both text and tool_calls.
  const other = first === 'text' && second === 'tool_calls' ? third : second;
  return other === undefined ? undefined : `a reply cannot have both ${first} and ${other}.`;
}
