import { formatProblem, parsePolicyTable, runPolicyTable } from '@writ/policy';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import { readFolder, readPolicy, readText } from './documents.ts';

/** Runs every table of a folder and prints the differences by file and line (SV-3). */
export async function testFolder(io: CliIo, folder: string, verbose: boolean): Promise<Exit> {
  const found = await readFolder(folder);
  const policy = await readPolicy(found.policy, found.tools);
  for (const warning of policy.warnings) io.warn(`${formatProblem(warning)} (warning)`);
  if (found.tables.length === 0) {
    io.warn(`${folder} contains no table (*-tests.yaml).`);
    return EXIT.error;
  }
  let rows = 0;
  let failed = 0;
  for (const file of found.tables) {
    const table = parsePolicyTable(await readText(file), { file });
    for (const { name, line, passed, differences } of runPolicyTable(policy, table)) {
      rows += 1;
      if (passed && verbose) io.print(`${file}:${line}: ${name}`);
      if (passed) continue;
      failed += 1;
      io.print(`${file}:${line}: ${name}`);
      for (const difference of differences) io.print(`    ${difference}`);
    }
  }
  const version = policy.version.slice(0, 12);
  io.print(`${rows - failed} of ${rows} rows pass under policy ${policy.name} (${version}).`);
  return failed === 0 ? EXIT.success : EXIT.failure;
}
