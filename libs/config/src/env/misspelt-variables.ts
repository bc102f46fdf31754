import { ConfigError } from '../config-error.ts';
import { type Environment, knownVariables } from './env.ts';

/**
 * Rejects an unknown variable whose name begins with `WRIT_` and resembles that of a known variable: ignoring
 * underscores, the names differ by at most two letters. A misspelled setting would otherwise be ignored, and the
 * default would apply (SYS-3). Call this function after all settings have been read. Other unknown variables are
 * permitted, because files may refer to them.
 * @throws ConfigError with one sentence for each variable, which suggests the known variable
 */
export function rejectMisspelt(env: Environment): void {
  const problems = Object.entries(env).flatMap(([name, value]) => {
    if (!value || !name.startsWith(PREFIX) || knownVariables.has(name)) return [];
    const meant = [...knownVariables].find((one) => isNear(name, one));
    return meant === undefined ? [] : [`${name} is not a setting; did you mean ${meant}?`];
  });
  if (problems.length > 0) throw new ConfigError('The environment', problems);
}

const PREFIX = 'WRIT_';
const MAX_TYPOS = 2;

function isNear(name: string, other: string): boolean {
  const [a, b] = [name, other].map((each) => each.slice(PREFIX.length).replaceAll('_', ''));
  return other.startsWith(PREFIX) && distance(a ?? '', b ?? '') <= MAX_TYPOS;
}

/** The number of letters to insert, delete or replace (Levenshtein). */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, at) => at);
  for (const [i, letter] of [...a].entries()) {
    const next = [i + 1];
    for (let j = 1; j <= b.length; j += 1) {
      const replaced = (row[j - 1] ?? 0) + (letter === b[j - 1] ? 0 : 1);
      next.push(Math.min(replaced, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[b.length] ?? 0;
}
