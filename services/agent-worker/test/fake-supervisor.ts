import type { MessageInitShape } from '@bufbuild/protobuf';
import { ExecutedFrom } from '@writ/contracts/writ/review/v1/action_pb';
import { Verdict } from '@writ/contracts/writ/review/v1/decision_pb';
import {
  type ReviewActionRequest,
  ReviewService,
} from '@writ/contracts/writ/review/v1/review_service_pb';
import type { AgentCredentialsSchema } from '@writ/contracts/writ/supervision/v1/credentials_pb';
import {
  type ReportOutcomeRequest,
  SupervisionService,
} from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { derivedId, outcomeOf } from '@writ/kernel';
import { type CallContext, partialRoute, type Route, requireAgent } from '@writ/rpc';
import { agentKey, lineOf } from './delivery.ts';
import { FakeReviews } from './fake-reviews.ts';
import type { FaultSwitches } from './fault-switches.ts';

/** A child to be delivered to a worker. */
export interface FakeChild {
  readonly runId: string;
  readonly agent: { readonly name: string; readonly instance: string };
  readonly from: string;
  readonly goal: string;
  readonly correlationId: string;
  readonly requestId: string;
}

/** Answers a worker as the supervisor does, and records its requests. */
export class FakeSupervisor extends FakeReviews {
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
  /** Recorded stop reason and answer, by agent (see agentKey). */
  readonly endings = new Map<string, { readonly stopReason: string; readonly answer: string }>();
  refreshes = 0;
  /** Returns the reason why a delegation gets no slot; undefined grants a slot. */
  slotRefusal: (agent: string) => string | undefined = () => undefined;
  /** Delivers a child to a worker. */
  deliverChild: (child: FakeChild) => Promise<unknown> = () =>
    Promise.reject(new Error('This test delivers no children.'));
  /** `instance outcome` of children that their parent ended, once each. */
  readonly ended: string[] = [];
  /** Issues the tokens that RefreshTokens returns. */
  credentials: (runId: string) => Promise<MessageInitShape<typeof AgentCredentialsSchema>>;
  readonly #faults: FaultSwitches;
  /** Ends an agent at its worker. */
  endAgent: (runId: string, instance: string) => Promise<unknown> = async () => undefined;
  readonly #spawned = new Map<string, FakeChild['agent']>();

  constructor(faults: FaultSwitches) {
    super();
    this.#faults = faults;
    this.credentials = () => Promise.reject(new Error('No credentials are set up.'));
  }

  routes(): Route[] {
    return [
      partialRoute(ReviewService, {
        reviewAction: async (request, call) => {
          const agent = agentOf(call);
          this.epochs.push(call.caller.epoch ?? -1n);
          this.workers.push(call.caller.service?.replica);
          this.grants.push(call.caller.slotGrant?.agentInstance);
          this.requests.push(request);
          const line = lineOf(agent.instance, request.partial ? 'partial' : request.callId);
          await this.#faults.pass(`before review ${line}`);
          const decision = this.review(agent.key, request, ({ verdict, action }) => {
            this.#take(request);
            this.decided.push(
              `${line} ${verdict} ${action?.kind === 'tool' ? action.name : 'final'}`,
            );
            if (verdict !== 'approve' || action?.kind !== 'final') return;
            this.#end(agent.key, request.partial ? 'paused' : 'success', action.answer);
          });
          await this.#faults.pass(`after review ${line}`);
          return { decision };
        },
        getDecision: async ({ callId }, call) => {
          await this.#faults.pass(`before decision ${callId}`);
          return { decision: this.currentDecision(agentOf(call).key, callId) };
        },
      }),
      partialRoute(SupervisionService, {
        getManifest: async (_request, { caller }) => {
          this.admitted.push(caller.epoch);
          return {};
        },
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
        refreshTokens: async (_, call) => {
          this.refreshes += 1;
          return { credentials: await this.credentials(agentOf(call).runId) };
        },
        reportOutcome: async (request, call) => {
          const { key } = agentOf(call);
          this.reports.push(request);
          await this.#faults.pass(`before report ${request.stopReason}`);
          // Rejects an unknown stop reason.
          outcomeOf(request.stopReason);
          this.#take(request);
          this.#end(key, request.stopReason);
          await this.#faults.pass(`after report ${request.stopReason}`);
          return { ...this.endings.get(key) };
        },
      }),
    ];
  }

  #take({ receipts, observations }: Pick<ReportOutcomeRequest, 'receipts' | 'observations'>): void {
    this.receipts.push(...receipts);
    this.observations.push(...observations.map(({ callId }) => callId));
  }

  #end(key: string, stopReason: string, answer = ''): void {
    if (!this.endings.has(key)) this.endings.set(key, { stopReason, answer });
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
