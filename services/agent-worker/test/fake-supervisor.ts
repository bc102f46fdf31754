import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { ActionSchema, ExecutedFrom } from '@writ/contracts/writ/review/v1/action_pb';
import {
  type Decision,
  DecisionSchema,
  HumanApprovalSchema,
  Verdict,
} from '@writ/contracts/writ/review/v1/decision_pb';
import {
  type ReviewActionRequest,
  ReviewService,
} from '@writ/contracts/writ/review/v1/review_service_pb';
import type { AgentCredentialsSchema } from '@writ/contracts/writ/supervision/v1/credentials_pb';
import {
  type ReportOutcomeRequest,
  SupervisionService,
} from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { InvalidRequestError, type JsonObject } from '@writ/kernel';
import { type Route, requireAgent, route, unimplemented } from '@writ/rpc';
import type { FaultSwitches } from './fault-switches.ts';
import { actionMessage, type DeskAction, ruleOn } from './refund-rules.ts';

interface Recorded {
  readonly proposal: string;
  readonly action: DeskAction | undefined;
  readonly decision: Decision;
}

const VERDICTS = {
  approve: Verdict.APPROVE,
  block: Verdict.BLOCK,
  escalate: Verdict.ESCALATE,
  invalid: Verdict.INVALID,
} as const;

/** Reviews by the refund desk's rules, and remembers as the contract asks. */
export class FakeSupervisor {
  /** One line for each new decision; repeats leave none. */
  readonly decided: string[] = [];
  readonly requests: ReviewActionRequest[] = [];
  readonly reports: ReportOutcomeRequest[] = [];
  readonly receipts: string[] = [];
  readonly observations: string[] = [];
  readonly epochs: bigint[] = [];
  /** Ids of the workers that proposed. */
  readonly workers: (string | undefined)[] = [];
  /** Whose slot grants came with proposals. */
  readonly grants: (string | undefined)[] = [];
  /** Stop reason and answer of the ending that stands, by run. */
  readonly endings = new Map<string, { readonly stopReason: string; readonly answer: string }>();
  refreshes = 0;
  /** Makes the tokens that RefreshTokens answers with. */
  credentials: (runId: string) => Promise<MessageInitShape<typeof AgentCredentialsSchema>>;
  readonly #faults: FaultSwitches;
  readonly #decisions = new Map<string, Recorded>();
  readonly #executed: string[] = [];
  #writs = 0;

  constructor(faults: FaultSwitches) {
    this.#faults = faults;
    this.credentials = () => Promise.reject(new Error('No credentials are set up.'));
  }

  routes(): Route[] {
    const unused = unimplemented('The fake supervisor does not do this.');
    return [
      route(ReviewService, {
        reviewAction: async (request, call) => {
          const { runId } = requireAgent(call);
          this.epochs.push(call.caller.epoch ?? -1n);
          this.workers.push(call.caller.service?.replica);
          this.grants.push(call.caller.slotGrant?.agentInstance);
          this.requests.push(request);
          await this.#faults.pass(`before review ${request.callId}`);
          const decision = this.#review(runId, request);
          await this.#faults.pass(`after review ${request.callId}`);
          return { decision };
        },
        getDecision: async ({ callId }, call) => {
          const { runId } = requireAgent(call);
          await this.#faults.pass(`before decision ${callId}`);
          return { decision: this.currentDecision(runId, callId) };
        },
      }),
      route(SupervisionService, {
        getManifest: unused,
        spawnChild: unused,
        endChild: unused,
        reportReceipts: unused,
        refreshTokens: async (_, call) => {
          this.refreshes += 1;
          return { credentials: await this.credentials(requireAgent(call).runId) };
        },
        reportOutcome: async (request, call) => {
          const { runId } = requireAgent(call);
          this.reports.push(request);
          await this.#faults.pass(`before report ${request.stopReason}`);
          this.#take(request);
          this.#end(runId, request.stopReason);
          await this.#faults.pass(`after report ${request.stopReason}`);
          return { stopReason: this.endings.get(runId)?.stopReason ?? '' };
        },
      }),
    ];
  }

  /** A person says what becomes of an escalated action; answers the decision to signal. */
  decide(
    runId: string,
    callId: string,
    answer: 'reject' | { readonly args: JsonObject },
  ): Decision {
    const recorded = this.#recorded(runId, callId);
    const { action } = recorded;
    const approved = answer !== 'reject' && action?.kind === 'tool';
    const { decision } = recorded;
    decision.settled = true;
    decision.humanApproval = create(HumanApprovalSchema, {
      approvalId: 'apr-1',
      approved,
      comment: approved ? 'approved_with_cap:800' : 'no',
      decidedBy: 'anna',
    });
    if (approved) {
      const args = { ...action.args, ...answer.args };
      decision.executedAction = messageOf({ ...action, args });
      decision.executedFrom = ExecutedFrom.HUMAN_REVISED;
    } else {
      decision.stopReason = 'human_rejected';
    }
    return this.currentDecision(runId, callId);
  }

  /** The decision with a fresh writ, if it may go on. */
  currentDecision(runId: string, callId: string): Decision {
    const recorded = this.#recorded(runId, callId);
    const { executedAction, settled } = recorded.decision;
    if (executedAction?.kind.case !== 'tool' || !settled) return recorded.decision;
    this.#writs += 1;
    return create(DecisionSchema, {
      ...recorded.decision,
      writ: `writ-${callId}-${this.#writs}`,
      writExpireTime: timestampFromMs(Date.now() + 60_000),
    });
  }

  #review(runId: string, request: ReviewActionRequest): Decision {
    const { callId, proposal } = request;
    const text = JSON.stringify([proposal.case, proposal.value], (key, value) =>
      key === '$typeName' ? undefined : value,
    );
    const known = this.#decisions.get(`${runId}/${callId}`);
    if (known !== undefined) {
      if (known.proposal !== text) throw reused(callId);
      return this.currentDecision(runId, callId);
    }
    this.#take(request);
    const raw =
      proposal.case === 'rawText'
        ? proposal.value
        : JSON.stringify({
            kind: 'final',
            answer: proposal.value?.kind.case === 'final' ? proposal.value.kind.value.answer : '',
          });
    const { verdict, reason, action } = ruleOn(raw, this.#executed);
    if (verdict === 'approve' && action?.kind === 'tool') this.#executed.push(action.name);
    const isFinal = verdict === 'approve' && action?.kind === 'final';
    const decision = create(DecisionSchema, {
      decisionId: `dec-${callId}`,
      callId,
      verdict: VERDICTS[verdict],
      reason,
      settled: verdict !== 'escalate',
      runEnded: isFinal,
    });
    if (action !== undefined) decision.action = messageOf(action);
    if (verdict === 'approve' && action !== undefined) {
      decision.executedAction = messageOf(action);
      decision.executedFrom = ExecutedFrom.ORIGINAL;
    }
    if (verdict === 'escalate') decision.approvalId = 'apr-1';
    if (verdict === 'block') decision.stopReason = `supervisor_block:${reason}`;
    if (verdict === 'invalid') decision.stopReason = `invalid_action:${reason}`;
    this.decided.push(`${callId} ${verdict} ${action?.kind === 'tool' ? action.name : 'final'}`);
    this.#decisions.set(`${runId}/${callId}`, { proposal: text, action, decision });
    if (isFinal) this.#end(runId, 'success', action.answer);
    return this.currentDecision(runId, callId);
  }

  #take({ receipts, observations }: Pick<ReportOutcomeRequest, 'receipts' | 'observations'>): void {
    this.receipts.push(...receipts);
    this.observations.push(...observations.map(({ callId }) => callId));
  }

  #end(runId: string, stopReason: string, answer = ''): void {
    if (!this.endings.has(runId)) this.endings.set(runId, { stopReason, answer });
  }

  #recorded(runId: string, callId: string): Recorded {
    const recorded = this.#decisions.get(`${runId}/${callId}`);
    if (recorded !== undefined) return recorded;
    throw new InvalidRequestError('NO_DECISION', `Nothing was proposed as ${callId}.`);
  }
}

/** What a service says to a call_id with another request. */
export function reused(callId: string): InvalidRequestError {
  return new InvalidRequestError('CALL_ID_REUSED', `${callId} was used for another request.`);
}

function messageOf(action: DeskAction) {
  return create(ActionSchema, actionMessage(action));
}
