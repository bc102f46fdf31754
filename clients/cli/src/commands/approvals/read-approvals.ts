import { create } from '@bufbuild/protobuf';
import { ApprovalSchema, ApprovalState } from '@writ/contracts/writ/approval/v1/approval_pb';
import { ListApprovalsResponseSchema } from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { openClient } from '../../client.ts';
import type { ClientOptions } from '../../client-options.ts';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import { enumValues } from '../../output/enum-values.ts';
import type { FormatOptions } from '../../output/format.ts';
import { readRows } from '../../output/pages.ts';
import { show } from '../../output/show.ts';
import { table } from '../../output/table.ts';
import { untilInterrupted } from '../../until-interrupted.ts';
import { APPROVAL_COLUMNS, approvalDetails, approvalLine } from './approval-text.ts';

const DECIDE_APPROVAL = 'writ.approval.v1.ApprovalService/DecideApproval';

/** Options of `writ approvals list`. */
export interface ListOptions extends ClientOptions, FormatOptions {
  readonly state: readonly string[];
  readonly all?: boolean;
  readonly run?: string;
  readonly limit: number;
}

/** Options of `writ approvals watch`. */
export interface WatchOptions extends ClientOptions, FormatOptions {
  readonly run?: string;
}

/**
 * Prints approvals, newest first.
 * @throws InvalidRequestError INVALID_OPTION, and what openClient throws
 */
export async function listApprovals(options: ListOptions, io: CliIo): Promise<Exit> {
  const { limit, run: runId = '' } = options;
  const states = statesOf(options);
  const service = openClient(options, io).approvals;
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
  return EXIT.success;
}

/** Prints an approval with its evidence and what the caller may do. */
export async function getApproval(
  approvalId: string,
  options: ClientOptions & FormatOptions,
  io: CliIo,
): Promise<Exit> {
  const { approvals: service, caller } = openClient(options, io);
  const { approval } = await service.getApproval({ approvalId });
  const { methods } = await caller.getCaller({});
  const mayDecide = methods.includes(DECIDE_APPROVAL);
  if (approval !== undefined) {
    show(io, options, { schema: ApprovalSchema, value: approval }, () =>
      approvalDetails(approval, { mayDecide }),
    );
  }
  return EXIT.success;
}

/** Prints the pending approvals, then each approval that opens or closes, until Ctrl-C. */
export async function watchApprovals(options: WatchOptions, io: CliIo): Promise<Exit> {
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
  return EXIT.success;
}

/** The states to list; empty for every state. */
function statesOf({ state, all = false }: ListOptions): ApprovalState[] {
  if (state.length > 0) return enumValues<ApprovalState>(ApprovalState, state, '--state');
  return all ? [] : [ApprovalState.PENDING];
}
