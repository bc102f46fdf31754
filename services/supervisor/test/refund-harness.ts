import type { MessageInitShape } from '@bufbuild/protobuf';
import { ApprovalService } from '@writ/contracts/writ/approval/v1/approval_service_pb';
import {
  CallStatus,
  type ReceiptClaimsSchema,
  type WritClaims,
} from '@writ/contracts/writ/identity/v1/claims_pb';
import type { Decision } from '@writ/contracts/writ/review/v1/decision_pb';
import {
  type ReviewActionRequestSchema,
  ReviewService,
} from '@writ/contracts/writ/review/v1/review_service_pb';
import type { Run } from '@writ/contracts/writ/run/v1/run_pb';
import { AgentKind } from '@writ/contracts/writ/supervision/v1/manifest_pb';
import { SupervisionService } from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import {
  AgentWorkerService,
  type DeliverRequest,
} from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import { checkWrit, createTrust, createVerifier, mintReceipt } from '@writ/identity';
import {
  type Clock,
  type JsonObject,
  sha256Hex,
  systemClock,
  UnavailableError,
} from '@writ/kernel';
import type { CallOptions, RpcClient } from '@writ/rpc';
import { createTelemetry } from '@writ/telemetry';
import type { SupervisorConfig } from '../src/index.ts';
import { exampleFile, refundTools } from './refund-tools.ts';
import { type PersonName, SupervisorUnderTest } from './supervisor-under-test.ts';

type ReceiptChanges = Partial<Omit<MessageInitShape<typeof ReceiptClaimsSchema>, '$typeName'>>;

/** The proposal of a worker, with receipts and observations. */
export type Proposal = Omit<
  MessageInitShape<typeof ReviewActionRequestSchema>,
  '$typeName' | 'callId'
>;

/** A tool call in the JSON format of a model. */
export function toolText(name: string, args: JsonObject = {}): Proposal {
  return { proposal: { case: 'rawText', value: JSON.stringify({ kind: 'tool', name, args }) } };
}

/** A final answer in the JSON format of a model. */
export function finalText(answer: string): Proposal {
  return { proposal: { case: 'rawText', value: JSON.stringify({ kind: 'final', answer }) } };
}

/** A refund in the JSON format of a model. */
export function refund(amountUsd: number, reason: string | null = 'Paid twice.'): Proposal {
  const args = { user_id: 42, amount_usd: amountUsd };
  return toolText('issue_refund', reason === null ? args : { ...args, reason });
}

export const LOOK_UP = toolText('get_refund_context', { user_id: 42 });
export const CONTEXT = { user: { id: 42 }, charge: { amount_usd: 1200 } };

/** A supervisor with the refund desk's agents and policy, and the worker and gateway of the test. */
export class RefundHarness {
  readonly supervisor: SupervisorUnderTest;
  readonly #clock: Clock;

  private constructor(supervisor: SupervisorUnderTest, clock: Clock) {
    this.supervisor = supervisor;
    this.#clock = clock;
  }

  static async start(
    options: { readonly config?: Partial<SupervisorConfig>; readonly clock?: Clock } = {},
  ): Promise<RefundHarness> {
    const supervisor = await SupervisorUnderTest.start({
      ...options,
      config: {
        agents: exampleFile('agents.yaml'),
        policy: exampleFile('policy.yaml'),
        ...options.config,
      },
    });
    const harness = new RefundHarness(supervisor, options.clock ?? systemClock);
    harness.listTools();
    return harness;
  }

  /** Sets the tool list of the gateway, which publishes its own events by default. */
  listTools(tools = refundTools(), registryVersion = 'v1', emitsHookEvents = true): void {
    this.supervisor.fakes.answer(ToolGatewayService.method.listTools, ({ knownVersion }) =>
      knownVersion === registryVersion
        ? { registryVersion, unchanged: true, emitsHookEvents }
        : { registryVersion, tools, emitsHookEvents },
    );
  }

  /** Makes the gateway unavailable. */
  stopGateway(): void {
    this.supervisor.fakes.answer(ToolGatewayService.method.listTools, () => {
      throw new UnavailableError('UNAVAILABLE', 'The peer is down.');
    });
  }

  /** Resolves with the run of an agent when it has ended. */
  async ended({ scope: { runId } }: TestAgent): Promise<Run> {
    await Array.fromAsync(this.supervisor.runs().watchRun({ runId }));
    const { run } = await this.supervisor.runs().getRun({ runId });
    if (run === undefined) throw new Error('The run does not exist.');
    return run;
  }

  /** Starts a run and returns its root agent. */
  async agent(name = 'refund-worker', person: PersonName = 'anna'): Promise<TestAgent> {
    const { fakes } = this.supervisor;
    const before = fakes.deliveries.length;
    await this.supervisor
      .runs(person)
      .startRun({ requestId: `start-${before}`, agent: name, goal: 'Refund it.' });
    await fakes.called(AgentWorkerService.method.deliver, before + 1);
    const delivery = fakes.deliveries[before];
    if (delivery === undefined) throw new Error('The run was not delivered.');
    return new TestAgent(this, delivery);
  }

  /** ApprovalService with the credentials of a person. */
  approvals(person: PersonName = 'anna'): RpcClient<typeof ApprovalService> {
    return this.supervisor.as(person, ApprovalService);
  }

  /** Delivers receipts as the gateway does; returns the acknowledged ids. */
  async report(...receipts: readonly string[]): Promise<readonly string[]> {
    const client = this.supervisor.fakes
      .peer('tool-gateway')
      .client(SupervisionService, { audience: 'supervisor', address: this.#address });
    const { acknowledgedReceiptIds } = await client.reportReceipts({ receipts: [...receipts] });
    return acknowledgedReceiptIds;
  }

  /** Verifies a writ as the gateway does; returns its claims. */
  async writClaims(agent: TestAgent, decision: Decision | undefined): Promise<WritClaims> {
    const action = decision?.executedAction?.kind;
    if (action?.case !== 'tool') throw new Error('The action was not approved.');
    const trust = createTrust({
      addresses: { supervisor: this.#address },
      telemetry: createTelemetry({ service: 'test', logLevel: 'silent' }),
    });
    const { tenant, runId, agentInstance: instance } = agent.scope;
    try {
      const verifier = createVerifier({ trust, clock: this.#clock });
      const { claims } = await checkWrit(verifier, decision?.writ ?? '', {
        call: { tenant, runId, instance, callId: decision?.callId ?? '' },
        tool: action.value.tool,
        argumentsJson: action.value.argumentsJson,
      });
      return claims;
    } finally {
      trust.close();
    }
  }

  get #address(): string {
    return this.supervisor.service.address;
  }

  async close(): Promise<void> {
    await this.supervisor.close();
  }
}

/** The root agent of a run with its worker's credentials. */
export class TestAgent {
  readonly scope: {
    readonly tenant: string;
    readonly runId: string;
    readonly agentInstance: string;
  };
  readonly #harness: RefundHarness;
  readonly #delivery: DeliverRequest;
  epoch = 1n;

  constructor(harness: RefundHarness, delivery: DeliverRequest) {
    this.#harness = harness;
    this.#delivery = delivery;
    this.scope = {
      tenant: delivery.tenant,
      runId: delivery.supervision?.runId ?? '',
      agentInstance: delivery.agent?.instance ?? '',
    };
  }

  /** The credentials that the worker sends with every call. */
  async options(grantTtlMs?: number): Promise<CallOptions> {
    const { epoch } = this;
    const spawnBudget = this.#harness.supervisor.fakes.peer('spawn-budget');
    return {
      agentToken: this.#delivery.credentials?.supervisorToken ?? '',
      slotGrant: await spawnBudget.slotGrant({ ...this.scope, epoch }, grantTtlMs),
      epoch,
    };
  }

  get reviews(): RpcClient<typeof ReviewService> {
    return this.reviewsAt(this.#harness.supervisor.service.address);
  }

  /** ReviewService of the supervisor at `address`. */
  reviewsAt(address: string): RpcClient<typeof ReviewService> {
    const { fakes } = this.#harness.supervisor;
    const isExternal = this.#delivery.manifest?.kind === AgentKind.EXTERNAL;
    return fakes
      .peer(isExternal ? 'agent-proxy' : 'agent-worker')
      .client(ReviewService, { audience: 'supervisor', address });
  }

  /** Proposes an action; `more` may contain receipts and observations. */
  async propose(callId: string, proposal: Proposal, more: Proposal = {}): Promise<Decision> {
    const request = { ...proposal, ...more, callId };
    const { decision } = await this.reviews.reviewAction(request, await this.options());
    if (decision === undefined) throw new Error('The response has no decision.');
    return decision;
  }

  /** Reads the current decision for a call. */
  async getDecision(callId: string): Promise<Decision | undefined> {
    return (await this.reviews.getDecision({ callId }, await this.options())).decision;
  }

  /** Withdraws a proposal, without a slot grant. */
  async withdraw(callId: string): Promise<boolean> {
    const { slotGrant: _, ...auth } = await this.options();
    return (await this.reviews.withdrawAction({ callId }, auth)).withdrawn;
  }

  /** Mints the gateway's receipt for an approved call; `changes` override its claims. */
  async receipt(
    { callId, executedAction }: Decision,
    result: JsonObject = {},
    changes: ReceiptChanges = {},
    signer = this.#harness.supervisor.fakes.peer('tool-gateway').signer,
  ): Promise<string> {
    const action = executedAction?.kind;
    if (action?.case !== 'tool') throw new Error('The action was not approved.');
    const { tool, argumentsJson } = action.value;
    const { tenant, runId, agentInstance } = this.scope;
    const { token } = await mintReceipt(signer, {
      tenant,
      runId,
      agent: { name: this.#delivery.agent?.name ?? '', instance: agentInstance },
      callId,
      tool,
      writId: 'writ-1',
      status: CallStatus.OK,
      resultSha256: sha256Hex(JSON.stringify(result)),
      resultFields: flattened(result) as Record<string, string>,
      argsSha256: sha256Hex(argumentsJson),
      revision: 1,
      ...changes,
    });
    return token;
  }

  /** Proposes a call and returns its receipt. */
  async execute(callId: string, proposal: Proposal, result: JsonObject): Promise<string> {
    return await this.receipt(await this.propose(callId, proposal), result);
  }
}

/** Flattens `{refund: {amount_usd: 5}}` to `{'refund.amount_usd': 5}`, as the gateway selects fields. */
function flattened(object: JsonObject, prefix = ''): JsonObject {
  return Object.fromEntries(
    Object.entries(object).flatMap(([key, value]) =>
      typeof value === 'object' && value !== null && !Array.isArray(value)
        ? Object.entries(flattened(value as JsonObject, `${prefix}${key}.`))
        : [[`${prefix}${key}`, value]],
    ),
  );
}
