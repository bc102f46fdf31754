import type { AgentRef, FollowOptions, JsonObject, RunMeta } from '@writ/kernel';
import { omitUndefined } from '@writ/kernel';
import type { Logger } from '@writ/telemetry';
import type { CarriedEvent } from '../domain/agent/carried-event.ts';
import type { AgentManifest } from '../domain/agent/manifest.ts';
import type { Reply } from '../domain/agent/message.ts';
import type { ChatTurn, LlmOutcome, LlmRequest } from '../domain/calls/model-call.ts';
import type { ToolInfo } from '../domain/calls/tool-call.ts';
import type { Guardrail } from '../domain/guardrails/guardrails.ts';
import type {
  AgentContext,
  Checkpoint,
  HandoffOutcome,
  ModelAnswer,
  Proposal,
  ProposalOutcome,
  RateLimit,
  Restored,
  SpawnOptions,
  SpawnOutcome,
} from './agent.ts';
import { runBranches } from './branches.ts';
import { ask } from './children/ask.ts';
import { spawn } from './children/spawn.ts';
import { stopOnRefusal } from './execute-tool.ts';
import { JournaledOperations, type SharedState } from './journal/journaled-operations.ts';
import { propose } from './proposals.ts';
import { nextPermit } from './rate-limits.ts';
import type { RunScope } from './scope.ts';
import { awaitSignal, sleep } from './signals.ts';
import { emit, follow } from './topics.ts';
import { PeerRefusal, type Stop, Stopped, type Unwinding } from './unwinding.ts';

/** Default timeout of an ask (AG-3). */
const ASK_TIMEOUT_MS = 120_000;

/** Maximum length of a log message in the event of the log entry, in characters. */
const MAX_LOG_MESSAGE = 128;

/** The context of an agent for one lease (RT-1). */
export class RuntimeContext implements AgentContext {
  readonly #scope: RunScope;
  readonly #log: Logger;
  readonly #shared: SharedState;
  readonly #operations: JournaledOperations;

  constructor(
    scope: RunScope,
    log: Logger,
    shared: SharedState = { unwinding: undefined, hasEnded: false },
  ) {
    this.#scope = scope;
    this.#log = log;
    this.#shared = shared;
    this.#operations = new JournaledOperations(scope, shared);
  }

  /** Whether an approved final answer has ended the agent. */
  get hasEnded(): boolean {
    return this.#shared.hasEnded;
  }

  /**
   * The unwinding that prevents the agent, or its branch, from ending now; undefined if there is none. The agent may
   * have caught it, or may have thrown another error instead.
   */
  get unwinding(): Unwinding | undefined {
    return this.#operations.unwinding;
  }

  get manifest(): AgentManifest {
    return this.#scope.session.manifest;
  }

  get meta(): RunMeta {
    return this.#scope.session.meta;
  }

  check(): void {
    this.#operations.check();
  }

  now(): Date {
    return new Date(this.#operations.local('now', '', () => this.meta.clock.now().getTime()));
  }

  random(): number {
    return this.#operations.local('random', '', () => Math.random());
  }

  log(
    message: string,
    fields: Readonly<Record<string, string | number | boolean>> = {},
    content?: JsonObject,
  ): void {
    this.#operations.local('log', { message, fields, ...(content && { content }) }, (callId) => {
      const { carried, commits, events, session, steps } = this.#scope;
      const logMessage = message.slice(0, MAX_LOG_MESSAGE);
      const { tenant, run_id, instance: agent } = session.row;
      const step = { agent: session.row, step: steps.current };
      const entry = { ...step, callId, logMessage, after: carried.earlierInStep(steps.current) };
      // The ids come last, so that `fields` cannot override them.
      this.#log.info({ ...fields, tenant, run_id, agent }, message);
      commits.emit((at) => events.logged(entry, at));
      return { message, fields, ...(content && { content }) };
    });
  }

  async tools(): Promise<readonly ToolInfo[]> {
    const { calls, peers, session } = this.#scope;
    const names = session.manifest.tools;
    const { tenant, name: agent } = session.row;
    // Volatile: the registry may change, but replays must produce the same prompts.
    const list = async () => {
      if (names.length === 0) return [];
      return await stopOnRefusal('worker', undefined, () =>
        calls.call({ audience: 'toolGateway' }, (options) =>
          peers.toolGateway.listTools({ tenant, agent, names }, options),
        ),
      );
    };
    const { value } = await this.#operations.remote<readonly ToolInfo[]>(
      'tools',
      { names },
      'read',
      list,
      { delivered: () => session.takeFirst('tools') },
    );
    return value;
  }

  async llm(request: LlmRequest): Promise<ModelAnswer> {
    const { calls, carried, peers, steps, progress, modelTimeoutMs } = this.#scope;
    const terms = { audience: 'executionMeter', acts: true, timeoutMs: modelTimeoutMs } as const;
    const ask = async (callId: string): Promise<LlmOutcome> => {
      const listener = progress.listener(callId);
      const call = {
        callId,
        step: steps.current,
        after: carried.earlierInStep(steps.current),
        request,
        onEvents: (events: readonly CarriedEvent[]) => carried.addEvents(events),
        ...(listener && { listener }),
      };
      try {
        return await calls.call(terms, (options) => peers.executionMeter.generate(call, options));
      } catch (error) {
        if (!(error instanceof PeerRefusal)) throw error;
        return { kind: 'failed', stopReason: error.stopReason, detail: error.message };
      }
    };
    const { callId, value } = await this.#operations.remote('llm', request, 'effect', ask, {
      // The meter does not record refusals: it may accept the repeated call.
      isVolatile: ({ kind }) => kind === 'failed',
    });
    return { ...value, callId };
  }

  async propose(proposal: Proposal): Promise<ProposalOutcome> {
    return await this.#operations.guarded(async () => {
      const outcome = await propose(this.#scope, proposal);
      if (outcome.kind === 'finished' && outcome.decision.runEnded) {
        const { executedAction: final } = outcome.decision;
        this.#shared.hasEnded = true;
        if (final?.kind === 'final') this.#scope.session.answer = final.answer;
      }
      return outcome;
    });
  }

  async sleepUntilSignal(name: string): Promise<JsonObject> {
    return await this.#operations.guarded(async () => {
      const { branch, position } = this.#scope.cursor.next();
      const { payload } = await awaitSignal(this.#scope, name, { branch, position, part: 0 });
      return JSON.parse(payload === '' ? '{}' : payload) as JsonObject;
    });
  }

  async tool(tool: string, argumentsJson: string, modelCallId?: string): Promise<ProposalOutcome> {
    const action = { kind: 'tool', tool, argumentsJson } as const;
    return await this.propose({ action, ...omitUndefined({ modelCallId }) });
  }

  async reply(
    answer: string,
    options: Pick<Proposal, 'modelCallId' | 'composed'> = {},
  ): Promise<ProposalOutcome> {
    return await this.propose({ action: { kind: 'final', answer }, ...options });
  }

  hasRecordedProposal(): boolean {
    const { journal, cursor } = this.#scope;
    return journal.hasProposalAfter(cursor);
  }

  async spawn(agent: string, task: string, options: SpawnOptions = {}): Promise<SpawnOutcome> {
    return await this.#operations.guarded(() => spawn(this.#scope, agent, task, options));
  }

  async ask(child: AgentRef, timeoutMs?: number): Promise<Reply> {
    const entry = this.manifest.subAgents.find(({ name }) => name === child.name);
    const askTimeoutMs = timeoutMs ?? entry?.askTimeoutMs ?? ASK_TIMEOUT_MS;
    return await this.#operations.guarded(() => ask(this.#scope, child, askTimeoutMs));
  }

  async handOff(agent: string, task: string, options: SpawnOptions = {}): Promise<HandoffOutcome> {
    const spawned = await this.spawn(agent, task, options);
    return spawned.kind === 'spawned' ? await this.ask(spawned.child) : spawned;
  }

  async emit(topic: string, item: JsonObject): Promise<void> {
    await this.#operations.guarded(() => emit(this.#scope, topic, item));
  }

  async follow(topic: string, options: FollowOptions = {}): Promise<void> {
    await this.#operations.guarded(() => follow(this.#scope, topic, options));
  }

  async sleep(ms: number): Promise<void> {
    await this.#operations.guarded(() => sleep(this.#scope, ms));
  }

  async turn(limit: RateLimit): Promise<void> {
    const { value: at } = await this.#operations.remote('turn', limit, 'read', () =>
      nextPermit(this.#scope, limit),
    );
    const wait = at - this.now().getTime();
    if (wait > 0) await this.sleep(wait);
  }

  async all<T>(branches: readonly ((ctx: AgentContext) => Promise<T>)[]): Promise<T[]> {
    return await this.#operations.guarded(() =>
      runBranches(
        this.#scope,
        branches.map((branch) => async (scope: RunScope) => {
          const inner = new RuntimeContext(scope, this.#log, this.#shared);
          try {
            const value = await branch(inner);
            if (inner.unwinding === undefined) return value;
          } catch (error) {
            if (inner.unwinding === undefined) throw error;
          }
          // The branch may have caught its unwinding.
          throw inner.unwinding;
        }),
      ),
    );
  }

  async step<T>(step: number, work: () => Promise<T>, waitsFor = ''): Promise<T> {
    return await this.#operations.guarded(() => this.#scope.steps.run(step, waitsFor, work));
  }

  flow(moment: 'started' | 'ended', status = 'ok'): void {
    const { commits, events, session, steps } = this.#scope;
    this.#operations.local('flow', { moment, status }, () => {
      const lastStep = steps.ended;
      commits.emit((at) =>
        moment === 'started'
          ? events.flowStarted(session.row, at)
          : events.flowEnded(session.row, status, lastStep, at),
      );
      return null;
    });
  }

  trip(guardrail: Guardrail): void {
    const { carried, commits, events, session, steps } = this.#scope;
    this.#operations.local('trip', { guardrail }, (callId) => {
      const step = { agent: session.row, step: steps.current };
      const trip = { ...step, callId, guardrail, after: carried.earlierInStep(steps.current) };
      commits.emit((at) => events.guardrailTripped(trip, at));
      return null;
    });
  }

  async recall(): Promise<readonly ChatTurn[]> {
    const { history, session } = this.#scope;
    const { value } = await this.#operations.remote('recall', '', 'read', () => history.load(), {
      delivered: () => session.takeFirst('history'),
    });
    return value;
  }

  remember(turns: readonly ChatTurn[], items = 0): void {
    this.#scope.session.conversation = { items, turns };
  }

  async restore(): Promise<Restored | undefined> {
    const { checkpoints, cursor } = this.#scope;
    return await this.#operations.guarded(() => checkpoints.restore(cursor));
  }

  checkpoint(checkpoint: Checkpoint): void {
    this.check();
    this.#operations.sticky(() => this.#scope.checkpoints.take(this.#scope.cursor, checkpoint));
  }

  draft(compose: () => string): void {
    this.#scope.session.draft = compose;
  }

  stop(stop: Stop): never {
    throw this.#operations.unwind(new Stopped(stop));
  }
}
