import type { CommandGroup } from '../../io.ts';
import { withFormat } from '../../output/format.ts';
import type { CheckOptions } from './check-policy.ts';
import type { ExplainOptions } from './explain-action.ts';
import type { TestOptions } from './test-folder.ts';

/** `writ policy`: checks, tests and explains policies without a platform. */
export const policyCommands: CommandGroup = (program, io, done) => {
  const policy = program.command('policy').description('Check, test and explain policies.');

  withFormat(policy.command('check'))
    .description('Check a policy and report every error as file:line:column.')
    .argument('<file>')
    .option('--tools <file>', 'tools.yaml, to check arguments against')
    .action(async (file: string, options: CheckOptions) => {
      const { checkPolicy } = await import('./check-policy.ts');
      done(await checkPolicy(io, file, options));
    });

  withFormat(policy.command('test'))
    .description('Run the policy tests (*-tests.yaml) of a folder against its policy.yaml.')
    .argument('<dir>')
    .option('--verbose', 'also print rows that pass')
    .action(async (folder: string, options: TestOptions) => {
      const { testFolder } = await import('./test-folder.ts');
      done(await testFolder(io, folder, options));
    });

  withFormat(policy.command('explain'))
    .description('Print which rule decides on an action, and why earlier rules did not match.')
    .argument('<file>')
    .requiredOption(
      '--action <json>',
      'the proposed action, such as {"tool":"pay","args":{"amount":5}}',
    )
    .option('--facts <json>', 'values of facts; other facts have their initial value', '{}')
    .option('--agent <name>', 'the agent that proposes the action', 'agent')
    .option('--tenant <name>', 'the tenant of the agent', 'tenant')
    .option('--priority <name>', 'BACKGROUND, LOW, NORMAL, HIGH or CRITICAL', 'NORMAL')
    .option('--approved', 'a person has approved the action')
    .option('--tools <file>', 'tools.yaml, to check arguments against')
    .action(async (file: string, options: ExplainOptions) => {
      const { explainAction } = await import('./explain-action.ts');
      done(await explainAction(io, file, options));
    });
};
