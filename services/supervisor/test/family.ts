import type { MessageInitShape } from '@bufbuild/protobuf';
import type { ActionSchema } from '@writ/contracts/writ/review/v1/action_pb';
import type { Decision, Verdict } from '@writ/contracts/writ/review/v1/decision_pb';
import { ReviewService } from '@writ/contracts/writ/review/v1/review_service_pb';
import type { Run } from '@writ/contracts/writ/run/v1/run_pb';
import { HistoryRetention } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import {
  type EndChildResponse,
  type SpawnChildRequestSchema,
  type SpawnChildResponse,
  SupervisionService,
} from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import {
  AgentWorkerService,
  type DeliverRequest,
} from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import type { Clock } from '@writ/kernel';
import type { CallOptions } from '@writ/rpc';
import type { SupervisorConfig } from '../src/index.ts';
import { SupervisorUnderTest } from './supervisor-under-test.ts';

/** A lead with three sub-agents, and an agent that is not one of them. */
export const AGENTS_YAML = `
agents:
  - name: lead
    kind: orchestrator
    model: { model: main }
    limits: { max_steps: 12, max_tool_calls: 9 }
    budget: { max_seconds: 60, max_tokens: 1000, max_cost_usd: "2", deadline: 10m }
    spawn: { max_agents: 3 }
    sub_agents:
      - { name: scout, description: Looks things up., priority: low }
      - { name: digger }
      - { name: lead }
  - name: scout
    kind: react
    model: { model: small, also_allowed: [large, "sim-*"] }
    tools: [look, act]
    limits: { max_tool_calls: 20 }
    budget: { max_tokens: 5000, max_turns: 7, deadline: 5m }
    priority: high
  - name: digger
    kind: react
    model: { model: main }
    priority: high
  - name: outsider
    kind: react
    model: { model: main }
`;

/** Rules that distinguish delegations by their tasks. */
const POLICY_YAML = `
policy: family
rules:
  - id: no-secrets
    match: { kind: delegation }
    when: action.task.contains("secret")
    decide: block
    reason: no_secrets
  - id: ask-first
    match: { kind: delegation }
    when: action.task.contains("risky")
    decide: escalate
    reason: risky_task
  - id: hand-over
    match: { kind: delegation, target: [scout, digger, lead] }
    decide: approve
    reason: may_hand_over
  - id: rest
    decide: approve
    reason: fine
`;

/** Optional fields of a SpawnChild request. */
export type Terms = Partial<Omit<MessageInitShape<typeof SpawnChildRequestSchema>, '$typeName'>>;

/** An agent with its worker's credentials. */
export class Member {
  readonly #family: Family;
  readonly delivery: DeliverRequest;
  epoch = 1n;
  /** The slot grant that is sent with each call; if undefined, each call sends a new grant. */
  grant: string | undefined;

  constructor(family: Family, delivery: DeliverRequest) {
    this.#family = family;
    this.delivery = delivery;
  }

  get instance(): string {
    return this.delivery.agent?.instance ?? '';
  }

  get runId(): string {
    return this.delivery.supervision?.runId ?? '';
  }

  /** Signs a current slot grant, as spawn-budget does. */
  async freshGrant(): Promise<string> {
    const { tenant } = this.delivery;
    return await this.#family.supervisor.fakes
      .peer('spawn-budget')
      .slotGrant({ tenant, runId: this.runId, agentInstance: this.instance, epoch: this.epoch });
  }

  async options(): Promise<CallOptions> {
    return {
      agentToken: this.delivery.credentials?.supervisorToken ?? '',
      slotGrant: this.grant ?? (await this.freshGrant()),
      epoch: this.epoch,
    };
  }

  /** Delegates a task to an agent. */
  async spawn(
    callId: string,
    agent = 'scout',
    task = 'Look it up.',
    terms: Terms = {},
  ): Promise<SpawnChildResponse> {
    const request = { callId, delegation: { agent, task }, ...terms };
    return await this.#family.supervision().spawnChild(request, await this.options());
  }

  /** Spawns a child and returns it. */
  async child(callId: string, agent = 'scout', terms: Terms = {}): Promise<Member> {
    const { child } = await this.spawn(callId, agent, 'Look it up.', terms);
    if (child === undefined) throw new Error('No child was spawned.');
    return this.#family.member(child.instance);
  }

  async end(
    child: string,
    outcome: 'replied' | 'timed_out' = 'replied',
    callId = `end-${child}`.slice(0, 64),
  ): Promise<EndChildResponse> {
    const request = { callId, childInstance: child, outcome };
    return await this.#family.supervision().endChild(request, await this.options());
  }

  /** Proposes a final answer. */
  async final(callId: string, answer = 'Done.', partial = false): Promise<Decision> {
    return await this.propose(callId, { case: 'final', value: { answer } }, partial);
  }

  /** Proposes an action. */
  async propose(
    callId: string,
    kind: NonNullable<MessageInitShape<typeof ActionSchema>['kind']>,
    partial = false,
  ): Promise<Decision> {
    const { supervisor } = this.#family;
    const reviews = supervisor.fakes
      .peer('agent-worker')
      .client(ReviewService, { audience: 'supervisor', address: supervisor.service.address });
    const { decision } = await reviews.reviewAction(
      { callId, partial, proposal: { case: 'action', value: { kind } } },
      await this.options(),
    );
    if (decision === undefined) throw new Error('The response has no decision.');
    return decision;
  }

  /** Reads the verdict of an earlier decision. */
  async verdictOf(callId: string): Promise<Verdict | undefined> {
    const { supervisor } = this.#family;
    const reviews = supervisor.fakes
      .peer('agent-worker')
      .client(ReviewService, { audience: 'supervisor', address: supervisor.service.address });
    return (await reviews.getDecision({ callId }, await this.options())).decision?.verdict;
  }
}

/** A supervisor whose agents delegate to each other, with fake peers. */
export class Family {
  readonly supervisor: SupervisorUnderTest;

  private constructor(supervisor: SupervisorUnderTest) {
    this.supervisor = supervisor;
  }

  static async start(
    options: { readonly config?: Partial<SupervisorConfig>; readonly clock?: Clock } = {},
  ): Promise<Family> {
    const config = {
      agents: { text: AGENTS_YAML, file: 'agents.yaml' },
      policy: { text: POLICY_YAML, file: 'policy.yaml' },
      // Longer than the default, for a busy machine.
      childWaitMs: 60_000,
      ...options.config,
    };
    return new Family(await SupervisorUnderTest.start({ ...options, config }));
  }

  /** Starts a run and returns its root agent. */
  async lead(retention: HistoryRetention = HistoryRetention.UNSPECIFIED): Promise<Member> {
    const { fakes } = this.supervisor;
    const before = fakes.deliveries.length;
    const request = { requestId: `start-${before}`, agent: 'lead', goal: 'Find it.', retention };
    await this.supervisor.runs().startRun(request);
    await fakes.called(AgentWorkerService.method.deliver, before + 1);
    const delivery = fakes.deliveries[before];
    if (delivery === undefined) throw new Error('The run was not delivered.');
    return new Member(this, delivery);
  }

  /** A delivered agent. */
  member(instance: string): Member {
    const delivery = this.supervisor.fakes.deliveries.find(
      ({ agent }) => agent?.instance === instance,
    );
    if (delivery === undefined) throw new Error(`${instance} was not delivered.`);
    return new Member(this, delivery);
  }

  /** SupervisionService with the worker's credentials. */
  supervision() {
    const { fakes, service } = this.supervisor;
    return fakes
      .peer('agent-worker')
      .client(SupervisionService, { audience: 'supervisor', address: service.address });
  }

  /** Cancels a run; resolves when it has ended. */
  async cancelled(runId: string): Promise<Run | undefined> {
    await this.supervisor.runs().cancelRun({ requestId: `cancel-${runId}`.slice(0, 64), runId });
    return await this.ended(runId);
  }

  /** Resolves when a run has ended. */
  async ended(runId: string): Promise<Run | undefined> {
    await Array.fromAsync(this.supervisor.runs().watchRun({ runId }));
    return (await this.supervisor.runs().getRun({ runId })).run;
  }

  async close(): Promise<void> {
    await this.supervisor.close();
  }
}
