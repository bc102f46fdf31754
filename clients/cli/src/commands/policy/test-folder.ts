import { formatProblem, parsePolicyTable, runPolicyTable, type TableResult } from '@writ/policy';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import type { FormatOptions } from '../../output/format.ts';
import { showData } from '../../output/show.ts';
import { readFolder, readPolicy, readText } from './documents.ts';
import { reportProblems } from './report-problems.ts';

/** Options of `writ policy test`. */
export interface TestOptions extends FormatOptions {
  readonly verbose?: boolean;
}

/** Runs every table of a folder and prints the differences by file and line (SV-3). */
export async function testFolder(io: CliIo, folder: string, options: TestOptions): Promise<Exit> {
  return await reportProblems(io, options, () => runTables(io, folder, options));
}

async function runTables(io: CliIo, folder: string, options: TestOptions): Promise<Exit> {
  const found = await readFolder(folder);
  const policy = await readPolicy(found.policy, found.tools);
  for (const warning of policy.warnings) io.warn(`${formatProblem(warning)} (warning)`);
  if (found.tables.length === 0) {
    io.warn(`${folder} contains no table (*-tests.yaml).`);
    return EXIT.error;
  }
  const rows: (TableResult & { readonly file: string })[] = [];
  for (const file of found.tables) {
    const table = parsePolicyTable(await readText(file), { file });
    rows.push(...runPolicyTable(policy, table).map((row) => ({ file, ...row })));
  }
  const shown = rows.filter(({ passed }) => !passed || options.verbose === true);
  const passed = rows.filter((row) => row.passed).length;
  const { name, version } = policy;
  const counts = { rows: rows.length, passed };
  showData(io, options, { policy: name, version, ...counts, results: shown }, () => [
    ...shown.flatMap(({ file, line, name: row, differences }) => [
      `${file}:${line}: ${row}`,
      ...differences.map((difference) => `    ${difference}`),
    ]),
    `${passed} of ${rows.length} rows pass under policy ${name} (${version.slice(0, 12)}).`,
  ]);
  return passed === rows.length ? EXIT.success : EXIT.failure;
}
