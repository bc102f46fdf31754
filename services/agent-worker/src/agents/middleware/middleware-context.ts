import type { AgentRef, JsonObject, RunMeta } from '@writ/kernel';
import type { AgentManifest } from '../../domain/agent/manifest.ts';
import type { Reply } from '../../domain/agent/message.ts';
import type { ChatTurn, LlmRequest } from '../../domain/calls/model-call.ts';
import type { ToolInfo } from '../../domain/calls/tool-call.ts';
import type { Guardrail } from '../../domain/guardrails/guardrails.ts';
import type {
  AgentContext,
  Checkpoint,
  HandoffOutcome,
  ModelAnswer,
  Proposal,
  ProposalOutcome,
  Restored,
  SpawnOptions,
  SpawnOutcome,
} from '../../runtime/agent.ts';
import type { Stop } from '../../runtime/unwinding.ts';
import {
  type ChatContext,
  compose,
  type FunctionContext,
  type Middleware,
  MiddlewareTermination,
} from './middleware.ts';

/** The layers around one branch of an agent. */
export interface Layers {
  readonly chat: readonly Middleware<ChatContext, ModelAnswer>[];
  readonly function: readonly Middleware<FunctionContext, ProposalOutcome>[];
}

/** Layers with what they stand around. */
interface Layered {
  chat(context: ChatContext): Promise<ModelAnswer>;
  function(context: FunctionContext): Promise<ProposalOutcome>;
}

/** A context whose model calls and tool calls go through middleware (AG-9); all else is the inner one's. */
export class MiddlewareContext implements AgentContext {
  readonly #inner: AgentContext;
  readonly #createLayers: () => Layers;
  #layers: Layered;

  constructor(inner: AgentContext, createLayers: () => Layers) {
    this.#inner = inner;
    this.#createLayers = createLayers;
    this.#layers = this.#createAround();
  }

  get manifest(): AgentManifest {
    return this.#inner.manifest;
  }

  get meta(): RunMeta {
    return this.#inner.meta;
  }

  async llm(request: LlmRequest): Promise<ModelAnswer> {
    const [first] = request.messages;
    const systemInstructions = first?.role === 'system' ? first.text : '';
    const context = { ...runContextOf(this.#inner), systemInstructions, request };
    return await orTerminate(this.#inner, () => this.#layers.chat(context));
  }

  async tool(tool: string, argumentsJson: string, modelCallId?: string): Promise<ProposalOutcome> {
    const call = { functionName: tool, arguments: argumentsJson, modelCallId };
    const context = { ...runContextOf(this.#inner), ...call };
    return await orTerminate(this.#inner, () => this.#layers.function(context));
  }

  async all<T>(branches: readonly ((ctx: AgentContext) => Promise<T>)[]): Promise<T[]> {
    // Layers that remember would otherwise depend on which branch is faster.
    const around = (ctx: AgentContext) => new MiddlewareContext(ctx, this.#createLayers);
    return await this.#inner.all(branches.map((branch) => (ctx) => branch(around(ctx))));
  }

  check(): void {
    this.#inner.check();
  }

  now(): Date {
    return this.#inner.now();
  }

  random(): number {
    return this.#inner.random();
  }

  log(message: string, fields?: Readonly<Record<string, string | number | boolean>>): void {
    this.#inner.log(message, fields);
  }

  tools(): Promise<readonly ToolInfo[]> {
    return this.#inner.tools();
  }

  propose(proposal: Proposal): Promise<ProposalOutcome> {
    return this.#inner.propose(proposal);
  }

  reply(
    answer: string,
    options?: Pick<Proposal, 'modelCallId' | 'composed'>,
  ): Promise<ProposalOutcome> {
    return this.#inner.reply(answer, options);
  }

  spawn(agent: string, task: string, options?: SpawnOptions): Promise<SpawnOutcome> {
    return this.#inner.spawn(agent, task, options);
  }

  ask(child: AgentRef, timeoutMs?: number): Promise<Reply> {
    return this.#inner.ask(child, timeoutMs);
  }

  handOff(agent: string, task: string, options?: SpawnOptions): Promise<HandoffOutcome> {
    return this.#inner.handOff(agent, task, options);
  }

  emit(topic: string, item: JsonObject): Promise<void> {
    return this.#inner.emit(topic, item);
  }

  follow(topic: string): Promise<void> {
    return this.#inner.follow(topic);
  }

  sleepUntilSignal(name: string): Promise<JsonObject> {
    return this.#inner.sleepUntilSignal(name);
  }

  sleep(ms: number): Promise<void> {
    return this.#inner.sleep(ms);
  }

  step<T>(step: number, work: () => Promise<T>, waitsFor?: string): Promise<T> {
    return this.#inner.step(step, work, waitsFor);
  }

  flow(moment: 'started' | 'ended', status?: string): void {
    this.#inner.flow(moment, status);
  }

  trip(guardrail: Guardrail): void {
    this.#inner.trip(guardrail);
  }

  recall(): Promise<readonly ChatTurn[]> {
    return this.#inner.recall();
  }

  remember(turns: readonly ChatTurn[], items?: number): void {
    this.#inner.remember(turns, items);
  }

  restore(): Promise<Restored | undefined> {
    return this.#inner.restore();
  }

  checkpoint(checkpoint: Checkpoint): void {
    this.#inner.checkpoint(checkpoint);
    // What layers remember is not there either when the agent goes on from here.
    this.#layers = this.#createAround();
  }

  stop(stop: Stop): never {
    return this.#inner.stop(stop);
  }

  #createAround(): Layered {
    const layers = this.#createLayers();
    return {
      chat: compose(layers.chat, ({ request }) => this.#inner.llm(request)),
      function: compose(layers.function, (context) =>
        this.#inner.tool(context.functionName, context.arguments, context.modelCallId),
      ),
    };
  }
}

/** What a middleware of any level is shown of the run. */
export function runContextOf(ctx: AgentContext) {
  const { runId, supervision } = ctx.meta;
  return { agentName: ctx.manifest.name, runId, sessionId: supervision?.sessionId ?? runId, ctx };
}

/** Ends the agent when a layer says so. */
export async function orTerminate<R>(ctx: AgentContext, work: () => Promise<R>): Promise<R> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof MiddlewareTermination)) throw error;
    const { reason, message } = error;
    return ctx.stop({ stopReason: `error:${reason}`, phase: 'worker', detail: message });
  }
}
