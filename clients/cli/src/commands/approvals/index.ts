import type { Command } from 'commander';
import { type ClientOptions, withClientOptions } from '../../client-options.ts';
import type { CommandGroup } from '../../io.ts';
import { collect } from '../../output/collect.ts';
import { type FormatOptions, withFormat } from '../../output/format.ts';
import { limitOf } from '../../output/pages.ts';
import type { DecideOptions, ResolveOptions } from './decide.ts';
import type { ListOptions, WatchOptions } from './read-approvals.ts';

/** `writ approvals`: what waits for a person, and the decision (PE-2, SV-5). */
export const approvalCommands: CommandGroup = (program, io, done) => {
  const approvals = program.command('approvals').description('Actions that wait for a person.');
  readCommands(approvals, io, done);
  decideCommands(approvals, io, done);
};

const readCommands: CommandGroup = (approvals, io, done) => {
  withFormat(withClientOptions(approvals.command('list')))
    .description('List approvals, newest first: pending ones unless --state or --all is set.')
    .option('--state <state>', 'only this state; can be repeated', collect, [])
    .option('--all', 'every state')
    .option('--run <id>', 'only of this run')
    .option('--limit <count>', 'maximum number of approvals to list', limitOf, 50)
    .action(async (options: ListOptions) => {
      const { listApprovals } = await import('./read-approvals.ts');
      done(await listApprovals(options, io));
    });

  withFormat(withClientOptions(approvals.command('get')))
    .argument('<approval-id>', 'the approval')
    .description('Show an approval with its evidence and what you may do.')
    .action(async (approvalId: string, options: ClientOptions & FormatOptions) => {
      const { getApproval } = await import('./read-approvals.ts');
      done(await getApproval(approvalId, options, io));
    });

  withFormat(withClientOptions(approvals.command('watch')))
    .description('Print approvals as they open and close, pending ones first, until Ctrl-C.')
    .option('--run <id>', 'only of this run')
    .action(async (options: WatchOptions) => {
      const { watchApprovals } = await import('./read-approvals.ts');
      done(await watchApprovals(options, io));
    });
};

/** `writ approvals approve|edit|reject|resolve`: exactly one decision of an approval counts (SV-5). */
const decideCommands: CommandGroup = (approvals, io, done) => {
  deciding(approvals, 'approve')
    .description('Approve the action as it is.')
    .action(async (approvalId: string, options: DecideOptions) => {
      const { approve } = await import('./decide.ts');
      done(await approve(approvalId, options, io));
    });

  deciding(approvals, 'edit')
    .argument('<argument=value...>', 'changed arguments; a value is JSON, or else a text')
    .description('Approve the action with other values of arguments that you may change.')
    .action(async (approvalId: string, changes: readonly string[], options: DecideOptions) => {
      const { edit } = await import('./decide.ts');
      done(await edit(approvalId, changes, options, io));
    });

  deciding(approvals, 'reject')
    .description('Reject the action.')
    .action(async (approvalId: string, options: DecideOptions) => {
      const { reject } = await import('./decide.ts');
      done(await reject(approvalId, options, io));
    });

  deciding(approvals, 'resolve')
    .option('--result <json>', 'the call was executed, with this result, a JSON object')
    .option('--not-done', 'the call was not executed')
    .description('Record the outcome of a call whose outcome is unknown.')
    .action(async (approvalId: string, options: ResolveOptions) => {
      const { resolve } = await import('./decide.ts');
      done(await resolve(approvalId, options, io));
    });
};

function deciding(approvals: Command, name: string): Command {
  return withFormat(withClientOptions(approvals.command(name)))
    .argument('<approval-id>', 'the approval')
    .option('--comment <text>', 'a comment, for the audit record', '')
    .option('--request-id <id>', 'repeat a request that was not answered');
}
