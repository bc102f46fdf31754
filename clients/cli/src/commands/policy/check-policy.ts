import { formatProblem } from '@writ/policy';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import type { FormatOptions } from '../../output/format.ts';
import { showData } from '../../output/show.ts';
import { readPolicy } from './documents.ts';
import { reportProblems } from './report-problems.ts';

/** Options of `writ policy check`. */
export interface CheckOptions extends FormatOptions {
  readonly tools?: string;
}

/** Checks a policy and prints every error as file:line:column. */
export async function checkPolicy(io: CliIo, file: string, options: CheckOptions): Promise<Exit> {
  return await reportProblems(io, options, () => checkFile(io, file, options));
}

async function checkFile(io: CliIo, file: string, options: CheckOptions): Promise<Exit> {
  const { name, version, facts, rules, warnings } = await readPolicy(file, options.tools);
  for (const warning of warnings) io.warn(`${formatProblem(warning)} (warning)`);
  const counts = { rules: rules.length, facts: facts.length };
  showData(io, options, { policy: name, version, ...counts, warnings, problems: [] }, () => [
    `${file}: policy ${name}, ${counts.rules} rules, ${counts.facts} facts, ${version}`,
  ]);
  return EXIT.success;
}
