import { glob } from 'node:fs/promises';
import { cruise, type ICruiseResult } from 'dependency-cruiser';
import extractDepcruiseOptions from 'dependency-cruiser/config-utl/extract-depcruise-options';
import type { CommandResult } from '../run-command.ts';

const FOLDERS = [
  'libs',
  'services',
  'platform',
  'examples',
  'clients',
  'scripts',
  'test',
  'deploy',
];

/**
 * Checks every module against the rules in `.dependency-cruiser.mjs`.
 *
 * @returns code 1 with one line per broken rule, or when a module was not read (rules without modules pass)
 */
export async function checkImportRules(): Promise<CommandResult> {
  const sources = await Array.fromAsync(
    glob(`{${FOLDERS.join(',')}}/**/*.ts`, { exclude: ['**/node_modules/**'] }),
  );
  const folders = FOLDERS.filter((folder) => sources.some((path) => path.startsWith(`${folder}/`)));
  const options = await extractDepcruiseOptions('./.dependency-cruiser.mjs');
  const { output } = await cruise(folders, { ...options, validate: true });
  if (typeof output === 'string') throw new Error(`dependency-cruiser returned text: ${output}`);
  const problems = [...violations(output), ...unread(output, sources)];
  return { code: problems.length > 0 ? 1 : 0, output: problems.join('\n') };
}

function violations({ summary }: ICruiseResult): string[] {
  const comments = new Map(
    summary.ruleSetUsed?.forbidden?.map(({ name, comment }) => [name, comment]),
  );
  return summary.violations.map(({ rule, from, to, cycle }) => {
    const path = cycle ? cycle.map(({ name }) => name).join(' → ') : to;
    return `${rule.name}: ${from} → ${path}\n    ${comments.get(rule.name) ?? ''}`;
  });
}

function unread({ modules }: ICruiseResult, sources: readonly string[]): string[] {
  if (sources.length === 0) return ['no modules found: nothing was checked'];
  const read = new Set(modules.map(({ source }) => source));
  return sources.filter((path) => !read.has(path)).map((path) => `not read: ${path}`);
}
