import { create } from '@bufbuild/protobuf';
import { ApprovalSchema, ApprovalState } from '@writ/contracts/writ/approval/v1/approval_pb';
import { ListApprovalsResponseSchema } from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { type ClientOptions, openClient, withClientOptions } from '../../client.ts';
import { type CommandGroup, EXIT } from '../../io.ts';
import { addEnum } from '../../output/enum-option.ts';
import { type FormatOptions, show, withFormat } from '../../output/format.ts';
import { limitOf, readRows } from '../../output/pages.ts';
import { table } from '../../output/table.ts';
import { untilInterrupted } from '../../until-interrupted.ts';
import { APPROVAL_COLUMNS, approvalDetails, approvalLine } from './approval-text.ts';
import { decideCommands } from './decide.ts';

const DECIDE_APPROVAL = 'writ.approval.v1.ApprovalService/DecideApproval';

interface ListOptions extends ClientOptions, FormatOptions {
  readonly state: readonly ApprovalState[];
  readonly all?: boolean;
  readonly run?: string;
  readonly limit: number;
}

/** `writ approvals`: what waits for a person, and the decision (PE-2, SV-5). */
export const approvalCommands: CommandGroup = (program, io, done) => {
  const approvals = program.command('approvals').description('Actions that wait for a person.');

  withFormat(withClientOptions(approvals.command('list')))
    .description('List approvals, newest first: pending ones unless --state or --all is set.')
    .option(
      '--state <state>',
      'only this state; can be repeated',
      addEnum<ApprovalState>(ApprovalState),
      [],
    )
    .option('--all', 'every state')
    .option('--run <id>', 'only of this run')
    .option('--limit <count>', 'most approvals to list', limitOf, 50)
    .action(async ({ limit, run: runId = '', ...options }: ListOptions) => {
      const service = openClient(options, io).approvals;
      const pending = options.all ? [] : [ApprovalState.PENDING];
      const states = options.state.length > 0 ? [...options.state] : pending;
      const { rows, more } = await readRows(limit, async (page) => {
        const answer = await service.listApprovals({ states, runId, ...page });
        return { rows: answer.approvals, nextPageToken: answer.nextPageToken };
      });
      const value = create(ListApprovalsResponseSchema, { approvals: rows });
      show(io, options, { schema: ListApprovalsResponseSchema, value }, () =>
        table(APPROVAL_COLUMNS, rows),
      );
      if (rows.length === 0) io.warn('No approvals.');
      if (more) io.warn(`More approvals exist: raise --limit above ${limit}.`);
      done(EXIT.success);
    });

  withFormat(withClientOptions(approvals.command('get')))
    .argument('<approval-id>', 'the approval')
    .description('Show an approval with its evidence and what you may do.')
    .action(async (approvalId: string, options: ClientOptions & FormatOptions) => {
      const { approvals: service, caller } = openClient(options, io);
      const { approval } = await service.getApproval({ approvalId });
      const { methods } = await caller.getCaller({});
      const mayDecide = methods.includes(DECIDE_APPROVAL);
      if (approval !== undefined) {
        show(io, options, { schema: ApprovalSchema, value: approval }, () =>
          approvalDetails(approval, { mayDecide }),
        );
      }
      done(EXIT.success);
    });

  withFormat(withClientOptions(approvals.command('watch')))
    .description('Print approvals as they open and close, pending ones first, until Ctrl-C.')
    .option('--run <id>', 'only of this run')
    .action(async (options: ClientOptions & FormatOptions & { readonly run?: string }) => {
      const { approvals: service } = openClient(options, io);
      await untilInterrupted(async (signal) => {
        const request = { runId: options.run ?? '' };
        for await (const { approval } of service.watchApprovals(request, { signal })) {
          if (approval === undefined) continue;
          show(io, options, { schema: ApprovalSchema, value: approval, stream: true }, () => [
            approvalLine(approval),
          ]);
        }
      });
      done(EXIT.success);
    });

  decideCommands(approvals, io, done);
};
