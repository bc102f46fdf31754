import { create } from '@bufbuild/protobuf';
import { ApprovalKind } from '@writ/contracts/writ/approval/v1/approval_pb';
import {
  ApproveWithEditsSchema,
  ResolveSchema,
} from '@writ/contracts/writ/approval/v1/approval_service_pb';
import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import type { RunEvent } from '@writ/contracts/writ/run/v1/run_pb';
import { ResolvedOutcome } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import { readLedger } from '@writ/example-refund-desk/ledger';
import { type Brief, publish, readShelf } from '@writ/example-research-team/shelf';
import { derivedId, isWritError } from '@writ/kernel';
import type { RetryingClient } from './retrying-client.ts';

const CAP_USD = 800;
const HUMAN_REPLY = 'It is for visitors of a mill, who know nothing of the subject.';

/** Human reviewers: they answer each approval and question once and record the acknowledged decisions. */
export class Reviewers {
  readonly #dataDir: string;
  /** Acknowledged decisions: request id by approval id. */
  readonly decided = new Map<string, string>();

  constructor(dataDir: string) {
    this.#dataDir = dataDir;
  }

  /** Responds to an event that requests a human decision or reply. */
  async respond(
    client: RetryingClient,
    runId: string,
    event: RunEvent,
    signal: AbortSignal,
  ): Promise<void> {
    if (event.entry.case !== 'hook') return;
    const { type, agent, waitingFor, eventId, approvalId } = event.entry.value;
    if (type === HookEventType.APPROVAL_REQUESTED) {
      await this.#decide(client, runId, approvalId, signal);
    }
    if (type === HookEventType.STEP_START && waitingFor.startsWith('human_reply')) {
      const signalRequest = {
        // The event id makes the request idempotent across watchers.
        requestId: eventId,
        runId,
        agentInstance: agent?.instance ?? '',
        name: waitingFor,
        payloadJson: JSON.stringify({ text: HUMAN_REPLY }),
      };
      await unlessEnded(client.call(({ runs }, to) => runs.signalRun(signalRequest, to), signal));
    }
  }

  async #decide(
    client: RetryingClient,
    runId: string,
    approvalId: string,
    signal: AbortSignal,
  ): Promise<void> {
    const { approval } = await client.call(
      ({ approvals }, to) => approvals.getApproval({ approvalId }, to),
      signal,
    );
    const action = approval?.action?.kind;
    if (action?.case !== 'tool') throw new Error(`${approvalId} is not about a tool call.`);
    const args = JSON.parse(action.value.argumentsJson) as Record<string, unknown>;
    const requestId = derivedId('req', approvalId);
    const answer =
      approval?.kind === ApprovalKind.RESOLVE
        ? this.#resolve(runId, action.value.tool, args as Partial<Brief>, approvalId)
        : ({
            case: 'approveWithEdits',
            value: create(ApproveWithEditsSchema, {
              argumentsJson: JSON.stringify({ ...args, amount_usd: CAP_USD }),
            }),
          } as const);
    const isAcknowledged = await unlessEnded(
      client.call(
        ({ approvals }, to) => approvals.decideApproval({ requestId, approvalId, answer }, to),
        signal,
      ),
    );
    if (isAcknowledged) this.decided.set(approvalId, requestId);
  }

  /**
   * Returns the resolution of a call with an unknown outcome. For `publish_brief`, publishes the brief if it is not on
   * the shelf; for any other tool, reads the outcome from the ledger.
   */
  #resolve(runId: string, tool: string, { title = '', text = '' }: Partial<Brief>, id: string) {
    if (tool !== 'publish_brief') return this.#resolveFromLedger(runId, tool);
    const isPublished = readShelf(this.#dataDir).some((brief) => brief.run_id === runId);
    if (!isPublished) publish(this.#dataDir, { title, text, run_id: runId, idempotency_key: id });
    const resultJson = JSON.stringify({ status: 'ok', number: 1, title });
    const value = create(ResolveSchema, { outcome: ResolvedOutcome.DONE, resultJson });
    return { case: 'resolve', value } as const;
  }

  #resolveFromLedger(runId: string, tool: string) {
    const { refunds, emails } = readLedger(this.#dataDir);
    const rows = tool === 'issue_refund' ? refunds : emails;
    const row = rows.find(({ run_id: id }) => id === runId);
    const amount = { amount_usd: (row?.amount_cents ?? 0) / 100 };
    const resultJson = JSON.stringify({ status: 'ok', refund: amount, email: amount });
    const value =
      row === undefined
        ? create(ResolveSchema, { outcome: ResolvedOutcome.NOT_DONE })
        : create(ResolveSchema, { outcome: ResolvedOutcome.DONE, resultJson });
    return { case: 'resolve', value } as const;
  }
}

/** Returns whether the call succeeded; false when the run or agent has ended. */
async function unlessEnded(work: Promise<unknown>): Promise<boolean> {
  try {
    await work;
    return true;
  } catch (error) {
    if (isWritError(error) && error.kind === 'failed_precondition') return false;
    throw error;
  }
}
