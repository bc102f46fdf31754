import { isWritError } from '@writ/kernel';
import { formatProblem, PolicyError } from '@writ/policy';
import type { CommandGroup } from '../../command-group.ts';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import { readPolicy } from './documents.ts';
import { type ExplainOptions, explainAction } from './explain-action.ts';
import { testFolder } from './test-folder.ts';

/** `writ policy`: holds a policy to its own document, to tables and to one action, without a platform. */
export const policyCommands: CommandGroup = (program, io, done) => {
  const policy = program.command('policy').description('Check, test and explain policies.');

  policy
    .command('check')
    .description('read a policy, and name every mistake as file:line:column')
    .argument('<file>')
    .option('--tools <file>', 'tools.yaml, to check arguments against')
    .action(async (file: string, { tools }: { readonly tools?: string }) => {
      done(await namingProblems(io, () => checkFile(io, file, tools)));
    });

  policy
    .command('test')
    .description('run the tables (*-tests.yaml) of a folder on its policy.yaml')
    .argument('<dir>')
    .option('--verbose', 'name the rows that hold, too')
    .action(async (folder: string, { verbose = false }: { readonly verbose?: boolean }) => {
      done(await namingProblems(io, () => testFolder(io, folder, verbose)));
    });

  policy
    .command('explain')
    .description('say which rule decides on an action, and why none before it did')
    .argument('<file>')
    .requiredOption('--action <json>', 'such as {"tool":"pay","args":{"amount":5}}')
    .option('--facts <json>', 'values of facts; the others have their initial one', '{}')
    .option('--agent <name>', 'the acting agent', 'agent')
    .option('--tenant <name>', 'its tenant', 'tenant')
    .option('--priority <name>', 'BACKGROUND, LOW, NORMAL, HIGH or CRITICAL', 'NORMAL')
    .option('--approved', 'a person has said yes')
    .option('--tools <file>', 'tools.yaml, to check arguments against')
    .action(async (file: string, options: ExplainOptions) => {
      done(await namingProblems(io, () => explainAction(io, file, options)));
    });
};

async function checkFile(io: CliIo, file: string, tools: string | undefined): Promise<Exit> {
  const { name, version, facts, rules, warnings } = await readPolicy(file, tools);
  for (const warning of warnings) io.warn(`${formatProblem(warning)} (warning)`);
  io.print(`${file}: policy ${name}, ${rules.length} rules, ${facts.length} facts, ${version}`);
  return EXIT.holds;
}

/** A document with mistakes does not hold; one that cannot be read is another matter. */
async function namingProblems(io: CliIo, work: () => Promise<Exit>): Promise<Exit> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof PolicyError) {
      for (const problem of error.problems) io.warn(formatProblem(problem));
      return EXIT.fails;
    }
    if (!isWritError(error)) throw error;
    io.warn(error.message);
    return EXIT.unknown;
  }
}
