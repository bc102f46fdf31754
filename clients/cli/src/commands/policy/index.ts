import { isWritError } from '@writ/kernel';
import { formatProblem, PolicyError } from '@writ/policy';
import { type CliIo, type CommandGroup, EXIT, type Exit } from '../../io.ts';
import { type FormatOptions, showData, withFormat } from '../../output/format.ts';
import { readPolicy } from './documents.ts';
import { type ExplainOptions, explainAction } from './explain-action.ts';
import { type TestOptions, testFolder } from './test-folder.ts';

interface CheckOptions extends FormatOptions {
  readonly tools?: string;
}

/** `writ policy`: checks, tests and explains policies without a platform. */
export const policyCommands: CommandGroup = (program, io, done) => {
  const policy = program.command('policy').description('Check, test and explain policies.');

  withFormat(policy.command('check'))
    .description('Check a policy and report every error as file:line:column.')
    .argument('<file>')
    .option('--tools <file>', 'tools.yaml, to check arguments against')
    .action(async (file: string, options: CheckOptions) => {
      done(await reportProblems(io, options, () => checkFile(io, file, options)));
    });

  withFormat(policy.command('test'))
    .description('Run the tables (*-tests.yaml) of a folder against its policy.yaml.')
    .argument('<dir>')
    .option('--verbose', 'also print rows that pass')
    .action(async (folder: string, options: TestOptions) => {
      done(await reportProblems(io, options, () => testFolder(io, folder, options)));
    });

  withFormat(policy.command('explain'))
    .description('Print which rule decides on an action, and why earlier rules did not match.')
    .argument('<file>')
    .requiredOption('--action <json>', 'such as {"tool":"pay","args":{"amount":5}}')
    .option('--facts <json>', 'values of facts; other facts have their initial value', '{}')
    .option('--agent <name>', 'the agent that proposes the action', 'agent')
    .option('--tenant <name>', 'its tenant', 'tenant')
    .option('--priority <name>', 'BACKGROUND, LOW, NORMAL, HIGH or CRITICAL', 'NORMAL')
    .option('--approved', 'a person has approved the action')
    .option('--tools <file>', 'tools.yaml, to check arguments against')
    .action(async (file: string, options: ExplainOptions) => {
      done(await reportProblems(io, options, () => explainAction(io, file, options)));
    });
};

async function checkFile(io: CliIo, file: string, options: CheckOptions): Promise<Exit> {
  const { name, version, facts, rules, warnings } = await readPolicy(file, options.tools);
  for (const warning of warnings) io.warn(`${formatProblem(warning)} (warning)`);
  const counts = { rules: rules.length, facts: facts.length };
  showData(io, options, { policy: name, version, ...counts, warnings, problems: [] }, () => [
    `${file}: policy ${name}, ${counts.rules} rules, ${counts.facts} facts, ${version}`,
  ]);
  return EXIT.success;
}

/** Prints the problems of an invalid policy or table and returns exit code 1; other errors return 2. */
async function reportProblems(
  io: CliIo,
  options: FormatOptions,
  work: () => Promise<Exit>,
): Promise<Exit> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof PolicyError) {
      const { problems } = error;
      const print = options.output === 'text' ? io.warn : io.print;
      showData({ print }, options, { problems }, () => problems.map(formatProblem));
      return EXIT.failure;
    }
    if (!isWritError(error)) throw error;
    io.warn(error.message);
    return EXIT.error;
  }
}
