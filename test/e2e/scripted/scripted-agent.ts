import type { MessageInitShape } from '@bufbuild/protobuf';
import { ChatRole } from '@writ/contracts/writ/model/v1/model_pb';
import type { Decision } from '@writ/contracts/writ/review/v1/decision_pb';
import type { Slot } from '@writ/contracts/writ/spawn/v1/pool_pb';
import { RenewIntent } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import type {
  EndChildResponse,
  SpawnChildRequestSchema,
  SpawnChildResponse,
} from '@writ/contracts/writ/supervision/v1/supervision_service_pb';
import type { CallOptions } from '@writ/rpc';
import type { WorkerClients } from './worker-clients.ts';

/** The tokens of one agent, one per service. */
export interface Tokens {
  readonly supervisor: string;
  readonly spawnBudget: string;
  readonly executionMeter: string;
  readonly toolGateway: string;
}

/** A delivered agent. */
export interface Delivered {
  readonly runId: string;
  readonly instance: string;
  readonly name: string;
  readonly state: string;
  readonly credentials: Tokens;
  readonly supervision: Record<string, unknown>;
}

/** Optional fields of a SpawnChild request. */
export type Terms = Partial<Omit<MessageInitShape<typeof SpawnChildRequestSchema>, '$typeName'>>;

/** An agent that a scripted worker runs. Its methods make the calls that a worker makes for an agent. */
export class ScriptedAgent {
  readonly #worker: WorkerClients;
  readonly #take: (runId: string, instance: string) => Promise<ScriptedAgent>;
  readonly delivered: Delivered;
  /** Sent with every call. */
  epoch = 1n;
  grant = '';

  /** @param take claims another agent of the run */
  constructor(
    worker: WorkerClients,
    delivered: Delivered,
    take: (runId: string, instance: string) => Promise<ScriptedAgent>,
  ) {
    this.#worker = worker;
    this.#take = take;
    this.delivered = delivered;
  }

  get instance(): string {
    return this.delivered.instance;
  }

  get runId(): string {
    return this.delivered.runId;
  }

  /** Renews the slot and stores the new grant, if any. */
  async renew(intent = RenewIntent.RUN): Promise<Slot | undefined> {
    const { spawnBudget } = this.delivered.credentials;
    const renewal = { agentToken: spawnBudget, epoch: this.epoch, intent };
    const { agents } = await this.#worker.slots.renew({ agents: [renewal] });
    const slot = agents[0]?.slot;
    if (slot !== undefined && slot.grant !== '') this.grant = slot.grant;
    return slot;
  }

  async spawn(
    callId: string,
    agent = 'scout',
    terms: Terms = {},
    task = 'Look it up.',
  ): Promise<SpawnChildResponse> {
    const request = { callId, delegation: { agent, task }, ...terms };
    return await this.#worker.supervision.spawnChild(request, this.#as('supervisor'));
  }

  /** Spawns a child and claims it. */
  async child(callId: string, agent = 'scout', terms: Terms = {}): Promise<ScriptedAgent> {
    const { child, slotRefusal } = await this.spawn(callId, agent, terms);
    if (child === undefined) throw new Error(`The child was refused: ${slotRefusal}`);
    return await this.#take(this.runId, child.instance);
  }

  async endChild(childInstance: string, callId: string): Promise<EndChildResponse> {
    const request = { callId, childInstance, outcome: 'replied' };
    return await this.#worker.supervision.endChild(request, this.#as('supervisor'));
  }

  /** Makes a model call. */
  async generate(callId: string): Promise<unknown[]> {
    const kind = { case: 'text', value: '{"state_summary":{"steps_completed":0}}' } as const;
    const messages = [{ role: ChatRole.USER, parts: [{ kind }] }];
    const request = { callId, model: 'refund-desk', messages, maxOutputTokens: 64n };
    return await Array.fromAsync(this.#worker.models.generate(request, this.#as('executionMeter')));
  }

  async final(callId: string, partial = false): Promise<Decision | undefined> {
    const value = { kind: { case: 'final', value: { answer: 'Done.' } } } as const;
    const request = { callId, partial, proposal: { case: 'action', value } as const };
    return (await this.#worker.reviews.reviewAction(request, this.#as('supervisor'))).decision;
  }

  /**
   * Takes over the agent like the real worker: presents the epoch to the supervisor, the meter and the gateway, and
   * makes no other call.
   */
  async takeOver(): Promise<void> {
    const { supervision, tabs, tools } = this.#worker;
    await supervision.getManifest({}, this.#as('supervisor'));
    await tabs.getTab({}, this.#as('executionMeter'));
    await tools.listTools({ admitEpoch: true, pageSize: 1 }, this.#as('toolGateway'));
  }

  /** Proposes a tool call that looks up a customer. */
  async propose(callId: string, userId: number): Promise<Decision | undefined> {
    const tool = { tool: 'get_refund_context', argumentsJson: `{"user_id":${userId}}` };
    const value = { kind: { case: 'tool', value: tool } } as const;
    const request = { callId, proposal: { case: 'action', value } as const };
    return (await this.#worker.reviews.reviewAction(request, this.#as('supervisor'))).decision;
  }

  async decision(callId: string): Promise<Decision | undefined> {
    return (await this.#worker.reviews.getDecision({ callId }, this.#as('supervisor'))).decision;
  }

  /** Executes the tool call of {@link propose} under `writ`. */
  async callTool(callId: string, userId: number, writ: string) {
    const { runId, instance } = this;
    const request = {
      call: { tenant: 'default', runId, agentInstance: instance, callId },
      tool: 'get_refund_context',
      argumentsJson: `{"user_id":${userId}}`,
      writ,
    };
    return await this.#worker.tools.callTool(request, { epoch: this.epoch });
  }

  #as(audience: keyof Tokens): CallOptions {
    return {
      agentToken: this.delivered.credentials[audience],
      epoch: this.epoch,
      ...(this.grant !== '' && { slotGrant: this.grant }),
    };
  }
}
