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
import { hasExactNumbers, InvalidRequestError, newId } from '@writ/kernel';
import { openClient } from '../../client.ts';
import type { ClientOptions } from '../../client-options.ts';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import type { FormatOptions } from '../../output/format.ts';
import { show } from '../../output/show.ts';
import { approvalDetails } from './approval-text.ts';

/** Options of every decision. */
export interface DecideOptions extends ClientOptions, FormatOptions {
  readonly comment: string;
  readonly requestId?: string;
}

/** Options of `writ approvals resolve`. */
export interface ResolveOptions extends DecideOptions {
  readonly result?: string;
  readonly notDone?: boolean;
}

type Answer = DecideApprovalRequest['answer'];

/** Approves the action unchanged. */
export async function approve(id: string, options: DecideOptions, io: CliIo): Promise<Exit> {
  return await decide(id, { case: 'approve', value: create(ApproveSchema) }, options, io);
}

/**
 * Approves the action with changed arguments.
 * @throws InvalidRequestError INVALID_OPTION for a change that is not argument=value, or has an inexact number
 */
export async function edit(
  id: string,
  changes: readonly string[],
  options: DecideOptions,
  io: CliIo,
): Promise<Exit> {
  const changesJson = JSON.stringify(Object.fromEntries(changes.map(changeOf)));
  const value = create(ApproveWithEditsSchema, { changesJson });
  return await decide(id, { case: 'approveWithEdits', value }, options, io);
}

/** Rejects the action. */
export async function reject(id: string, options: DecideOptions, io: CliIo): Promise<Exit> {
  return await decide(id, { case: 'reject', value: create(RejectSchema) }, options, io);
}

/**
 * Records the outcome of a call whose outcome is unknown.
 * @throws InvalidRequestError INVALID_OPTION for both or neither of --result and --not-done
 */
export async function resolve(id: string, options: ResolveOptions, io: CliIo): Promise<Exit> {
  return await decide(id, resolutionOf(options), options, io);
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

/**
 * Parses `argument=value`; a value that is not JSON is a string: `amount_usd=700.50` is a number, `note=late` a string.
 */
function changeOf(change: string): readonly [string, unknown] {
  const at = change.indexOf('=');
  if (at < 1)
    throw new InvalidRequestError(
      'INVALID_OPTION',
      `A change is argument=value, such as amount_usd=800, not ${JSON.stringify(change)}.`,
      { field: 'argument=value' },
    );
  const name = change.slice(0, at);
  const text = change.slice(at + 1);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return [name, text];
  }
  if (hasExactNumbers(text)) return [name, value];
  throw new InvalidRequestError(
    'INVALID_OPTION',
    `A number of ${name} has too many digits to be sent exactly; quote it if it is a text.`,
    { field: name },
  );
}
