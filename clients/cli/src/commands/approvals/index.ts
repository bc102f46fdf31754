import type { Command } from 'commander';
import { type ClientOptions, withClientOptions } from '../../client-options.ts';
import type { CommandGroup } from '../../io.ts';
import { collect } from '../../output/collect.ts';
import { type FormatOptions, withFormat } from '../../output/format.ts';
import { limitOf } from '../../output/pages.ts';
import type { DecideOptions, ResolveOptions } from './decide.ts';
import type { ListOptions, WatchOptions } from './read-approvals.ts';

/** `writ approvals`: lists, watches and decides the actions that wait for a person (PE-2, SV-5). */
export const approvalCommands: CommandGroup = (program, io, done) => {
  const approvals = program.command('approvals').description('Actions that wait for a person.');
  readCommands(approvals, io, done);
  decideCommands(approvals, io, done);
};

const readCommands: CommandGroup = (approvals, io, done) => {
  withFormat(withClientOptions(approvals.command('list')))
    .description(
      'List approvals, newest first: only pending approvals unless --state or --all is set.',
    )
    .option('--state <state>', 'only this state; can be repeated', collect, [])
    .option('--all', 'every state')
    .option('--run <id>', 'only approvals of this run')
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
    .description(
      'Print the pending approvals, then each approval that opens or closes, until Ctrl-C.',
    )
    .option('--run <id>', 'only approvals of this run')
    .action(async (options: WatchOptions) => {
      const { watchApprovals } = await import('./read-approvals.ts');
      done(await watchApprovals(options, io));
    });
};

/** `writ approvals approve|edit|reject|resolve`: the first decision on an approval is final (SV-5). */
const decideCommands: CommandGroup = (approvals, io, done) => {
  deciding(approvals, 'approve')
    .description('Approve the action unchanged.')
    .action(async (approvalId: string, options: DecideOptions) => {
      const { approve } = await import('./decide.ts');
      done(await approve(approvalId, options, io));
    });

  deciding(approvals, 'edit')
    .argument('<argument=value...>', 'changed arguments; a value that is not JSON is a string')
    .description(
      'Approve the action with changed arguments; `writ approvals get` shows which you may change.',
    )
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
    .option('--result <json>', 'the call was executed and returned this JSON object')
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
