import { create } from '@bufbuild/protobuf';
import { ApprovalSchema } from '@writ/contracts/writ/approval/v1/approval_pb';
import {
  ApproveSchema,
  ApproveWithEditsSchema,
  type DecideApprovalRequest,
  RejectSchema,
  ResolveSchema,
} from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { ResolvedOutcome } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { InvalidRequestError, newId } from '@writ/kernel';
import type { Command } from 'commander';
import { type ClientOptions, openClient, withClientOptions } from '../../client.ts';
import { type CliIo, type CommandGroup, EXIT, type Exit } from '../../io.ts';
import { type FormatOptions, show, withFormat } from '../../output/format.ts';
import { approvalDetails } from './approval-text.ts';

interface DecideOptions extends ClientOptions, FormatOptions {
  readonly comment: string;
  readonly requestId?: string;
}

interface ResolveOptions extends DecideOptions {
  readonly result?: string;
  readonly notDone?: boolean;
}

type Answer = DecideApprovalRequest['answer'];

/** `writ approvals approve|edit|reject|resolve`: exactly one decision of an approval counts (SV-5). */
export const decideCommands: CommandGroup = (approvals, io, done) => {
  deciding(approvals, 'approve')
    .description('Approve the action as it is.')
    .action(async (approvalId: string, options: DecideOptions) => {
      const answer: Answer = { case: 'approve', value: create(ApproveSchema) };
      done(await decide(approvalId, answer, options, io));
    });

  deciding(approvals, 'edit')
    .argument('<argument=value...>', 'changed arguments; a value is JSON, or else a text')
    .description('Approve the action with other values of arguments that you may change.')
    .action(async (approvalId: string, changes: readonly string[], options: DecideOptions) => {
      const changesJson = JSON.stringify(Object.fromEntries(changes.map(changeOf)));
      const value = create(ApproveWithEditsSchema, { changesJson });
      done(await decide(approvalId, { case: 'approveWithEdits', value }, options, io));
    });

  deciding(approvals, 'reject')
    .description('Reject the action.')
    .action(async (approvalId: string, options: DecideOptions) => {
      done(await decide(approvalId, { case: 'reject', value: create(RejectSchema) }, options, io));
    });

  deciding(approvals, 'resolve')
    .option('--result <json>', 'the call was executed, with this result, a JSON object')
    .option('--not-done', 'the call was not executed')
    .description('Record the outcome of a call whose outcome is unknown.')
    .action(async (approvalId: string, options: ResolveOptions) => {
      done(await decide(approvalId, resolutionOf(options), options, io));
    });
};

function deciding(approvals: Command, name: string): Command {
  return withFormat(withClientOptions(approvals.command(name)))
    .argument('<approval-id>', 'the approval')
    .option('--comment <text>', 'a comment, for the audit record', '')
    .option('--request-id <id>', 'repeat a request that was not answered');
}

async function decide(
  approvalId: string,
  answer: Answer,
  options: DecideOptions,
  io: CliIo,
): Promise<Exit> {
  const { requestId = newId('req'), comment } = options;
  const { approval, proposedArgumentsJson } = await openClient(
    options,
    io,
  ).approvals.decideApproval({ requestId, approvalId, answer, comment });
  if (approval !== undefined) {
    show(io, options, { schema: ApprovalSchema, value: approval }, () =>
      approvalDetails(approval, { mayDecide: true }),
    );
  }
  if (proposedArgumentsJson === '') return EXIT.success;
  io.warn(
    `Nothing was decided: policy accepts these arguments instead: ${proposedArgumentsJson}. ` +
      'To approve them, edit the approval with exactly these values.',
  );
  return EXIT.failure;
}

function resolutionOf({ result, notDone = false }: ResolveOptions): Answer {
  if ((result === undefined) !== notDone)
    throw new InvalidRequestError(
      'INVALID_OPTION',
      'Exactly one of --result and --not-done is required.',
      { field: '--result' },
    );
  const { DONE, NOT_DONE } = ResolvedOutcome;
  const value = create(ResolveSchema, {
    outcome: notDone ? NOT_DONE : DONE,
    resultJson: result ?? '',
  });
  return { case: 'resolve', value };
}

/** `amount_usd=700.50` is a number, `note=late` a text. */
function changeOf(change: string): readonly [string, unknown] {
  const at = change.indexOf('=');
  if (at < 1)
    throw new InvalidRequestError(
      'INVALID_OPTION',
      `A change is argument=value, such as amount_usd=800, not ${JSON.stringify(change)}.`,
      { field: 'argument=value' },
    );
  const text = change.slice(at + 1);
  try {
    return [change.slice(0, at), JSON.parse(text)];
  } catch {
    return [change.slice(0, at), text];
  }
}
