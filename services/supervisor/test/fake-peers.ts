import type { DescMethod, DescService, MessageInitShape, MessageShape } from '@bufbuild/protobuf';
import { ExecutionMeterService } from '@writ/contracts/writ/meter/v1/execution_meter_service_pb';
import { TabState } from '@writ/contracts/writ/meter/v1/tab_pb';
import { SpawnBudgetService } from '@writ/contracts/writ/spawn/v1/spawn_budget_service_pb';
import { ToolGatewayService } from '@writ/contracts/writ/tool/v1/tool_gateway_service_pb';
import {
  AgentWorkerService,
  type DeliverRequest,
} from '@writ/contracts/writ/worker/v1/agent_worker_service_pb';
import type { ServiceName } from '@writ/identity';
import {
  type Clock,
  NotFoundError,
  NotImplementedError,
  PreconditionError,
  UnavailableError,
} from '@writ/kernel';
import { type CallContext, type Route, route } from '@writ/rpc';
import { type KeyPeer, startKeyPeer } from '@writ/testing';

/** A call that a fake peer received. */
export interface RecordedCall {
  readonly method: DescMethod;
  readonly request: unknown;
  readonly traceparent: string | undefined;
}

/** An agent of the fake worker. */
interface FakeAgent {
  readonly runId: string;
  readonly instance: string;
  hasEnded: boolean;
  /** Ids of the accepted signals. */
  readonly signals: Set<string>;
}

type Answer = (request: never, call: CallContext) => unknown;

/**
 * Fakes of the five services that a supervisor calls, behind real gRPC. They record every call, track open
 * pools and tabs, and fail on demand.
 */
export class FakePeers {
  readonly calls: RecordedCall[] = [];
  readonly peers = new Map<ServiceName, KeyPeer>();
  readonly #faults = new Map<DescMethod, (() => unknown)[]>();
  readonly #answers = new Map<DescMethod, Answer>();
  readonly #waiting: { readonly isMet: () => boolean; readonly resolve: () => void }[] = [];

  /** @param clock the clock of the service under test, which the fakes use for their tokens */
  static async start(clock?: Clock): Promise<FakePeers> {
    const fakes = new FakePeers();
    fakes.#answerByDefault();
    const routes: readonly (readonly [ServiceName, Route[]])[] = [
      ['spawn-budget', [fakes.#route(SpawnBudgetService)]],
      ['execution-meter', [fakes.#route(ExecutionMeterService)]],
      ['tool-gateway', [fakes.#route(ToolGatewayService)]],
      ['agent-worker', [fakes.#route(AgentWorkerService)]],
      ['agent-proxy', [fakes.#route(AgentWorkerService)]],
    ];
    for (const [name, served] of routes) {
      fakes.peers.set(name, await startKeyPeer(name, { routes: served, ...(clock && { clock }) }));
    }
    return fakes;
  }

  /** Returns the fake of a service. */
  peer(service: ServiceName): KeyPeer {
    const peer = this.peers.get(service);
    if (peer === undefined) {
      throw new UnavailableError('NOT_STARTED', `The fake ${service} is not running.`);
    }
    return peer;
  }

  /** The `addressOf` of a supervisor. */
  readonly addressOf = (service: ServiceName): string => this.peer(service).address;

  /**
   * Makes the next calls of a method fail, one call for each error. A function in place of an error is called before
   * the method answers.
   */
  fail(method: DescMethod, ...errors: readonly (Error | (() => unknown))[]): void {
    const faults = errors.map((error) =>
      typeof error === 'function'
        ? error
        : () => {
            throw error;
          },
    );
    this.#faults.set(method, [...(this.#faults.get(method) ?? []), ...faults]);
  }

  /** Removes the remaining failures of a method. */
  recover(method: DescMethod): void {
    this.#faults.delete(method);
  }

  /** Replaces the answer of a method. */
  answer<M extends DescMethod>(
    method: M,
    handle: (
      request: MessageShape<M['input']>,
      call: CallContext,
    ) => MessageInitShape<M['output']> | Promise<MessageInitShape<M['output']>>,
  ): void {
    this.#answers.set(method, handle as Answer);
  }

  /** The requests of a method so far. */
  requests<M extends DescMethod>(method: M): MessageShape<M['input']>[] {
    return this.calls
      .filter((call) => call.method === method)
      .map(({ request }) => request as MessageShape<M['input']>);
  }

  /** The Deliver requests so far, including repeated requests. */
  get deliveries(): DeliverRequest[] {
    return this.requests(AgentWorkerService.method.deliver);
  }

  /** All calls except the requests for the tool list, which the supervisor also sends without a run. */
  get callsForRuns(): RecordedCall[] {
    return this.calls.filter(({ method }) => method !== ToolGatewayService.method.listTools);
  }

  /** The method names of the calls for runs in order, without consecutive repetitions. */
  get sequence(): string[] {
    return this.callsForRuns
      .map(({ method }) => method.name)
      .filter((method, index, all) => method !== all[index - 1]);
  }

  /** Resolves when a method has been called `times` times. */
  called(method: DescMethod, times = 1): Promise<void> {
    const isMet = () => this.calls.filter((call) => call.method === method).length >= times;
    if (isMet()) return Promise.resolve();
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ isMet, resolve });
    return promise;
  }

  async close(): Promise<void> {
    await Promise.all([...this.peers.values()].map((peer) => peer.close()));
  }

  #route(service: DescService): Route {
    const handlers = service.methods.map((method) => [
      method.localName,
      async (request: never, call: CallContext) => this.#handle(method, request, call),
    ]);
    return route(service, Object.fromEntries(handlers));
  }

  async #handle(method: DescMethod, request: never, call: CallContext): Promise<unknown> {
    this.calls.push({ method, request, traceparent: call.header('traceparent') });
    for (const waiting of this.#waiting) if (waiting.isMet()) waiting.resolve();
    const fault = this.#faults.get(method)?.shift();
    if (fault !== undefined) await fault();
    const answer = this.#answers.get(method);
    if (answer !== undefined) return await answer(request, call);
    throw new NotImplementedError(
      'METHOD_NOT_IMPLEMENTED',
      `The fake does not implement ${method.name}.`,
    );
  }

  #answerByDefault(): void {
    /** Whether each pool is closed, by run. */
    const pools = new Map<string, boolean>();
    const tabs = new Set<string>();
    const unknown = (what: string) => new NotFoundError('NOT_FOUND', `The ${what} does not exist.`);
    this.answer(SpawnBudgetService.method.openPool, ({ runId, root }) => {
      if (pools.get(runId) === true) {
        throw new PreconditionError('POOL_CLOSED', 'The run has ended: its pool is closed.');
      }
      pools.set(runId, false);
      return { slot: { ...(root && { agent: root }), grant: `grant-of-${runId}` } };
    });
    this.answer(SpawnBudgetService.method.acquire, ({ agent }) => ({
      slot: { ...(agent && { agent }), grant: `grant-of-${agent?.instance}` },
    }));
    // The pool lists no slots, so the supervisor assumes that every agent can act.
    this.answer(SpawnBudgetService.method.getPool, ({ tenant, runId }) => {
      const closed = pools.get(runId);
      if (closed === undefined) throw unknown('pool');
      return { pool: { tenant, runId, closed } };
    });
    this.answer(SpawnBudgetService.method.release, () => ({ released: true }));
    this.answer(SpawnBudgetService.method.closePool, ({ runId }) => {
      pools.set(runId, true);
      return { pool: { runId, closed: true } };
    });
    this.answer(ExecutionMeterService.method.openTab, ({ runId }) => {
      tabs.add(runId);
      return { tab: { runId } };
    });
    this.answer(ExecutionMeterService.method.closeTab, ({ tab }) => {
      if (!tabs.has(tab?.runId ?? '')) throw unknown('tab');
      const totals = {
        usage: { inputTokens: 120n, outputTokens: 30n },
        costNanoUsd: 4_200n,
        turns: 2n,
      };
      return { tab: { state: TabState.CLOSED, totals, runTotals: totals } };
    });
    this.answer(ExecutionMeterService.method.freeze, () => ({}));
    this.answer(ToolGatewayService.method.freeze, () => ({}));
    this.answer(ExecutionMeterService.method.unfreeze, () => ({ lifted: true }));
    this.answer(ToolGatewayService.method.unfreeze, () => ({ lifted: true }));
    this.#answerAsWorker();
  }

  /** Fakes a worker whose agents act only through the calls of a test, and end when the supervisor awaits their end. */
  #answerAsWorker(): void {
    const { deliver, signal, cancel } = AgentWorkerService.method;
    const agents = new Map<string, FakeAgent>();
    /** Number of agents that each cancellation ended, by request id. */
    const cancels = new Map<string, number>();
    /** Stop reasons by run. */
    const cancelledRuns = new Map<string, string>();
    const of = (runId: string, instance: string) => agents.get(`${runId}/${instance}`);
    this.answer(deliver, ({ agent, supervision }) => {
      const runId = supervision?.runId ?? '';
      const instance = agent?.instance ?? '';
      if (of(runId, instance) !== undefined) return { accepted: false };
      const stopReason = cancelledRuns.get(runId);
      if (stopReason !== undefined) {
        const message = `Run ${runId} has ended: ${stopReason}.`;
        throw new PreconditionError('RUN_ENDED', message, { stop_reason: stopReason });
      }
      agents.set(`${runId}/${instance}`, { runId, instance, hasEnded: false, signals: new Set() });
      return { accepted: true };
    });
    this.answer(signal, ({ runId, agentInstance, requestId }) => {
      const agent = of(runId, agentInstance);
      if (agent === undefined) {
        throw new NotFoundError('AGENT_NOT_FOUND', `Agent ${agentInstance} does not exist.`);
      }
      if (agent.hasEnded || agent.signals.has(requestId)) return { accepted: false };
      agent.signals.add(requestId);
      return { accepted: true };
    });
    this.answer(cancel, ({ runId, agentInstance, requestId, stopReason, awaitEnd }) => {
      const concerned = [...agents.values()].filter(
        (agent) =>
          agent.runId === runId && (agentInstance === '' || agent.instance === agentInstance),
      );
      const alive = concerned.filter(({ hasEnded }) => !hasEnded);
      const known = cancels.get(requestId);
      for (const agent of alive) agent.hasEnded = true;
      if (awaitEnd) return { hasEnded: concerned.length > 0 };
      if (agentInstance === '') cancelledRuns.set(runId, stopReason);
      cancels.set(requestId, known ?? alive.length);
      return { ended: known ?? alive.length };
    });
  }
}
