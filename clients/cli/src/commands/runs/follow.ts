import type { WritClient } from '@writ/client';
import { createRunPrinter } from '@writ/client/display';
import { ApprovalState } from '@writ/contracts/writ/approval/v1/approval_pb';
import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import {
  type Run,
  type RunEvent,
  RunEventSchema,
  RunStatus,
} from '@writ/contracts/writ/run/v1/run_pb';
import { PermissionDeniedError, UnavailableError } from '@writ/kernel';
import { explain } from '../../explain.ts';
import { type CliIo, EXIT, type Exit } from '../../io.ts';
import type { FormatOptions } from '../../output/format.ts';
import { show } from '../../output/show.ts';
import { untilInterrupted } from '../../until-interrupted.ts';

/**
 * Prints the events of a run until it ends. Ctrl-C stops the output; the run continues. After an error, prints the
 * command that continues to watch the run.
 * @returns success for status ok, failure for any other status, interrupted after Ctrl-C, error after an error
 */
export async function followRun(
  run: Run,
  client: Pick<WritClient, 'approvals' | 'runs'>,
  options: FormatOptions,
  io: CliIo,
): Promise<Exit> {
  const { runId } = run;
  let outcome: Exit | 'interrupted';
  try {
    outcome = await untilInterrupted((signal) => printRun(run, client, { ...options, signal }, io));
  } catch (error) {
    return watchFailed(runId, `writ runs watch ${runId}`, error, io);
  }
  if (outcome !== 'interrupted') return outcome;
  io.warn(`Run ${runId} continues: writ runs watch ${runId}, or writ runs cancel ${runId}.`);
  return EXIT.interrupted;
}

/** Prints why the watch of a run has failed, and the command that watches it again. */
export function watchFailed(
  runId: string,
  command: string,
  error: unknown,
  io: Pick<CliIo, 'warn'>,
): Exit {
  io.warn(explain(error));
  io.warn(`Run ${runId} may continue: ${command}.`);
  return EXIT.error;
}

async function printRun(
  run: Run,
  client: Pick<WritClient, 'approvals' | 'runs'>,
  options: FormatOptions & { readonly signal: AbortSignal },
  io: CliIo,
): Promise<Exit> {
  const { runId } = run;
  const lines = createRunPrinter(io.print);
  if (options.output === 'text') lines.start(run);
  for await (const { event } of client.runs.watchRun({ runId }, { signal: options.signal })) {
    if (event === undefined) continue;
    if (options.output === 'text') lines.event(event);
    else show(io, options, { schema: RunEventSchema, value: event, stream: true }, () => []);
    const approvalId = approvalIn(event);
    if (approvalId !== undefined && (await mayBePending(approvalId, client))) {
      io.warn(`To decide: writ approvals get ${approvalId}, which lists the commands.`);
    }
  }
  const { run: ended } = await client.runs.getRun({ runId });
  if (ended !== undefined && options.output === 'text') lines.end(ended);
  return ended?.result?.status === RunStatus.OK ? EXIT.success : EXIT.failure;
}

function approvalIn({ entry }: RunEvent): string | undefined {
  if (entry.case !== 'hook') return undefined;
  const { type, approvalId } = entry.value;
  return type === HookEventType.APPROVAL_REQUESTED ? approvalId : undefined;
}

/**
 * Returns whether an approval is pending. Returns true if the approval cannot be read, because it may then be pending:
 * reading it requires the role approver, auditor or admin, and the supervisor may be unavailable.
 */
async function mayBePending(
  approvalId: string,
  { approvals }: Pick<WritClient, 'approvals'>,
): Promise<boolean> {
  try {
    const { approval } = await approvals.getApproval({ approvalId });
    return approval?.state === ApprovalState.PENDING;
  } catch (error) {
    if (error instanceof PermissionDeniedError || error instanceof UnavailableError) return true;
    throw error;
  }
}
