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
import type { PatientClient } from './patient-client.ts';

const CAP_USD = 800;
const READERS = 'It is for visitors of a mill, who know nothing of the subject.';

/** The people beside the runs: they answer what they are asked, once, and remember what was taken from them. */
export class People {
  readonly #dataDir: string;
  /** Approvals whose answer was acknowledged, with the request that answered. */
  readonly decided = new Map<string, string>();

  constructor(dataDir: string) {
    this.#dataDir = dataDir;
  }

  /** Does what an event of a run asks of people, if anything. */
  async heed(
    client: PatientClient,
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
      const saying = {
        // The same event asks the same, whoever watches.
        requestId: eventId,
        runId,
        agentInstance: agent?.instance ?? '',
        name: waitingFor,
        payloadJson: JSON.stringify({ text: READERS }),
      };
      await unlessOver(client.call(({ runs }, to) => runs.signalRun(saying, to), signal));
    }
  }

  async #decide(
    client: PatientClient,
    runId: string,
    approvalId: string,
    signal: AbortSignal,
  ): Promise<void> {
    const { approval } = await client.call(
      ({ approvals }, to) => approvals.getApproval({ approvalId }, to),
      signal,
    );
    const action = approval?.action?.kind;
    if (action?.case !== 'tool') throw new Error(`${approvalId} is about no tool.`);
    const args = JSON.parse(action.value.argumentsJson) as Record<string, unknown>;
    const requestId = derivedId('req', approvalId);
    const answer =
      approval?.kind === ApprovalKind.RESOLVE
        ? this.#look(runId, action.value.tool, args as Partial<Brief>, approvalId)
        : ({
            case: 'approveWithEdits',
            value: create(ApproveWithEditsSchema, {
              argumentsJson: JSON.stringify({ ...args, amount_usd: CAP_USD }),
            }),
          } as const);
    const taken = await unlessOver(
      client.call(
        ({ approvals }, to) => approvals.decideApproval({ requestId, approvalId, answer }, to),
        signal,
      ),
    );
    if (taken) this.decided.set(approvalId, requestId);
  }

  /** Looks whether a brief of which nobody knows is on the shelf, and puts it there if not. */
  #look(runId: string, tool: string, { title = '', text = '' }: Partial<Brief>, id: string) {
    // A call that was voided while nobody knew its outcome: the desk's books tell.
    if (tool !== 'publish_brief') return this.#lookAtTheDesk(runId, tool);
    const isThere = readShelf(this.#dataDir).some((brief) => brief.run_id === runId);
    if (!isThere) publish(this.#dataDir, { title, text, run_id: runId, idempotency_key: id });
    const resultJson = JSON.stringify({ status: 'ok', number: 1, title });
    const value = create(ResolveSchema, { outcome: ResolvedOutcome.DONE, resultJson });
    return { case: 'resolve', value } as const;
  }

  #lookAtTheDesk(runId: string, tool: string) {
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

/** Whether it was taken; not when whoever asked has ended meanwhile. */
async function unlessOver(work: Promise<unknown>): Promise<boolean> {
  try {
    await work;
    return true;
  } catch (error) {
    if (isWritError(error) && error.kind === 'failed_precondition') return false;
    throw error;
  }
}
