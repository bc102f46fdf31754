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
import {
  derivedId,
  InvalidRequestError,
  isJsonObject,
  type JsonObject,
  NotFoundError,
} from '@writ/kernel';
import { type CallContext, type Route, requireAgent, route, unimplemented } from '@writ/rpc';
import { agentKey, lineOf } from './delivery.ts';
import type { FaultSwitches } from './fault-switches.ts';
import { actionMessage, type RefundAction, ruleOn } from './refund-rules.ts';

interface Recorded {
  readonly proposal: string;
  readonly action: RefundAction | undefined;
  readonly decision: Decision;
}

const VERDICTS = {
  approve: Verdict.APPROVE,
  block: Verdict.BLOCK,
  escalate: Verdict.ESCALATE,
  invalid: Verdict.INVALID,
} as const;

/** A child to be delivered to a worker. */
export interface FakeChild {
  readonly runId: string;
  readonly agent: { readonly name: string; readonly instance: string };
  readonly from: string;
  readonly goal: string;
  readonly correlationId: string;
  readonly requestId: string;
}

/** Reviews by the refund desk's rules, idempotently, as the contract requires. */
export class FakeSupervisor {
  /** One line for each new decision; repeats are not listed. */
  readonly decided: string[] = [];
  readonly requests: ReviewActionRequest[] = [];
  readonly reports: ReportOutcomeRequest[] = [];
  readonly receipts: string[] = [];
  readonly observations: string[] = [];
  readonly epochs: bigint[] = [];
  /** Epochs of workers that have taken over an agent. */
  readonly admitted: (bigint | undefined)[] = [];
  /** Ids of the workers that sent proposals. */
  readonly workers: (string | undefined)[] = [];
  /** Holders of the slot grants that were sent with proposals. */
  readonly grants: (string | undefined)[] = [];
  /** Recorded stop reason and answer, by run. */
  readonly endings = new Map<string, { readonly stopReason: string; readonly answer: string }>();
  refreshes = 0;
  /** Overrides the verdict on proposals. */
  rule: typeof ruleOn = ruleOn;
  /** Returns the reason why a delegation gets no slot; undefined grants one. */
  slotRefusal: (agent: string) => string | undefined = () => undefined;
  /** Delivers a child to a worker. */
  deliverChild: (child: FakeChild) => Promise<unknown> = () =>
    Promise.reject(new Error('This test delivers no children.'));
  /** `instance outcome` of children that their parent ended, once each. */
  readonly ended: string[] = [];
  /** Issues the tokens that RefreshTokens returns. */
  credentials: (runId: string) => Promise<MessageInitShape<typeof AgentCredentialsSchema>>;
  readonly #faults: FaultSwitches;
  readonly #decisions = new Map<string, Recorded>();
  /** Ends an agent at its worker. */
  endAgent: (runId: string, instance: string) => Promise<unknown> = async () => undefined;
  readonly #executed: string[] = [];
  readonly #spawned = new Map<string, FakeChild['agent']>();
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
          const agent = agentOf(call);
          this.epochs.push(call.caller.epoch ?? -1n);
          this.workers.push(call.caller.service?.replica);
          this.grants.push(call.caller.slotGrant?.agentInstance);
          this.requests.push(request);
          const line = lineOf(agent.instance, request.partial ? 'partial' : request.callId);
          await this.#faults.pass(`before review ${line}`);
          const decision = this.#review(agent, request);
          await this.#faults.pass(`after review ${line}`);
          return { decision };
        },
        getDecision: async ({ callId }, call) => {
          await this.#faults.pass(`before decision ${callId}`);
          return { decision: this.currentDecision(agentOf(call).key, callId) };
        },
      }),
      route(SupervisionService, {
        getManifest: async (_request, { caller }) => {
          this.admitted.push(caller.epoch);
          return {};
        },
        openExternalRun: unused,
        spawnChild: async ({ callId, delegation, correlationId }, call) => {
          const { instance, runId, key } = agentOf(call);
          const { agent: name = '', task = '' } = delegation ?? {};
          const line = lineOf(instance, callId);
          await this.#faults.pass(`before spawn ${line}`);
          const slotRefusal = this.slotRefusal(name);
          const action = { kind: { case: 'delegation', value: { agent: name, task } } } as const;
          const decision = {
            decisionId: `dec-${callId}`,
            callId,
            verdict: Verdict.APPROVE,
            reason: 'handed_over',
            action,
            executedAction: action,
            executedFrom: ExecutedFrom.ORIGINAL,
            settled: true,
          };
          const id = `${key}/${callId}`;
          if (!this.#spawned.has(id)) {
            const others = [...this.#spawned.values()].filter((one) => one.name === name);
            this.#spawned.set(id, { name, instance: `${name}-${others.length + 1}` });
            this.decided.push(`${line} approve handoff ${name}`);
          }
          const child = this.#spawned.get(id) ?? { name, instance: '' };
          if (slotRefusal !== undefined) return { decision, slotRefusal };
          const requestId = derivedId('deliver', runId, child.instance);
          await this.deliverChild({
            runId,
            agent: child,
            from: instance,
            goal: task,
            correlationId,
            requestId,
          });
          await this.#faults.pass(`after spawn ${line}`);
          return { decision, child };
        },
        endChild: async ({ childInstance, outcome, callId }, call) => {
          const { runId, instance } = agentOf(call);
          const line = lineOf(instance, callId);
          await this.#faults.pass(`before end ${line}`);
          const ended = `${childInstance} ${outcome}`;
          if (!this.ended.includes(ended)) this.ended.push(ended);
          await this.endAgent(runId, childInstance);
          await this.#faults.pass(`after end ${line}`);
          return { stopReason: 'success' };
        },
        reportReceipts: unused,
        refreshTokens: async (_, call) => {
          this.refreshes += 1;
          return { credentials: await this.credentials(agentOf(call).runId) };
        },
        reportOutcome: async (request, call) => {
          const { key } = agentOf(call);
          this.reports.push(request);
          await this.#faults.pass(`before report ${request.stopReason}`);
          this.#take(request);
          this.#end(key, request.stopReason);
          await this.#faults.pass(`after report ${request.stopReason}`);
          return { stopReason: this.endings.get(key)?.stopReason ?? '' };
        },
      }),
    ];
  }

  /** Decides an escalated action as a human; returns the decision to signal. */
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
      comment: approved ? '' : 'no',
      basis: approved ? 'approved_with_cap:800' : '',
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

  /** Returns the decision with a new writ, unless it was refused. */
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

  #review({ key: runId, instance }: FakeAgent, request: ReviewActionRequest): Decision {
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
    const { verdict, reason, action } = this.rule(rawTextOf(proposal), this.#executed);
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
    const line = lineOf(instance, request.partial ? 'partial' : callId);
    this.decided.push(`${line} ${verdict} ${action?.kind === 'tool' ? action.name : 'final'}`);
    this.#decisions.set(`${runId}/${callId}`, { proposal: text, action, decision });
    if (isFinal) this.#end(runId, request.partial ? 'paused' : 'success', action.answer);
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
    throw new NotFoundError('DECISION_NOT_FOUND', `Nothing was proposed as ${callId}.`);
  }
}

/** A calling agent and its name in the fakes' records. */
interface FakeAgent {
  readonly runId: string;
  readonly instance: string;
  readonly key: string;
}

function agentOf(call: CallContext): FakeAgent {
  const { runId, agent } = requireAgent(call);
  return { runId, instance: agent.instance, key: agentKey(runId, agent.instance) };
}

function rawTextOf(proposal: ReviewActionRequest['proposal']): string {
  if (proposal.case === 'rawText') return proposal.value;
  const kind = proposal.value?.kind;
  if (kind?.case === 'tool') {
    const { tool: name, argumentsJson } = kind.value;
    return JSON.stringify({ kind: 'tool', name, args: argumentsOf(argumentsJson) });
  }
  return JSON.stringify({ kind: 'final', answer: kind?.case === 'final' ? kind.value.answer : '' });
}

function argumentsOf(text: string): JsonObject {
  const value: unknown = JSON.parse(text);
  return isJsonObject(value as JsonObject) ? (value as JsonObject) : {};
}

/** The error for a call_id that is reused with another request. */
export function reused(callId: string): InvalidRequestError {
  return new InvalidRequestError('CALL_ID_REUSED', `${callId} was used for another request.`, {
    field: 'call_id',
    call_id: callId,
  });
}

function messageOf(action: RefundAction) {
  return create(ActionSchema, actionMessage(action));
}
