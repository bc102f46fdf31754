import { omitUndefined } from '@writ/kernel';
import type { AgentManifest } from '../../domain/agent/manifest.ts';
import type { Message } from '../../domain/agent/message.ts';
import type { ChatTurn, LlmRequest, ToolOffer } from '../../domain/calls/model-call.ts';
import type { AgentContext, ModelAnswer } from '../../runtime/agent.ts';
import type { Strategies } from './context-strategies.ts';
import { Conversation, type ConversationState } from './conversation.ts';
import { type ChatPipeline, createChatPipeline } from './pipeline.ts';
import { Refusals } from './refusals.ts';
import type { Toolbox } from './toolbox.ts';

const DEFAULT_MAX_ITERATIONS = 10;
/** Number of iterations between two checkpoints, which limits a replay. */
const CHECKPOINT_EVERY = 32;

/** State of the loop between two iterations, without the turns. */
interface ChatState {
  readonly iteration: number;
  readonly refusals: number;
  readonly pipeline: unknown;
  /** Number of turns that were dropped from memory. */
  readonly gone: ConversationState;
}

/**
 * Calls the model and executes its tool calls until the model answers without a tool call; proposes that answer as the
 * final answer (AG-2). The model sees a view of the conversation; turns that no later view includes are dropped from
 * memory at a checkpoint, which stores the new turns of this run.
 */
export class ChatLoop {
  readonly #ctx: AgentContext;
  readonly #toolbox: Toolbox;
  readonly #pipeline: ChatPipeline;
  readonly #refusals: Refusals;
  #conversation = new Conversation([], 0);
  #offers: readonly ToolOffer[] = [];

  /** @param strategies context strategies of the worker's modules */
  constructor(ctx: AgentContext, toolbox: Toolbox, strategies: Strategies) {
    this.#ctx = ctx;
    this.#toolbox = toolbox;
    this.#pipeline = createChatPipeline(ctx.manifest, strategies);
    this.#refusals = new Refusals(ctx, 'tell_model');
  }

  /** Processes a message until the agent has ended. */
  async run(message: Message): Promise<void> {
    const { limits } = this.#ctx.manifest;
    this.#offers = await this.#toolbox.offers(this.#ctx);
    const opened = await this.#pipeline.open(this.#ctx, message);
    this.#conversation = new Conversation(opened, this.#pipeline.known);
    this.#ctx.draft(() => this.#conversation.draft());
    const maxIterations = limits.maxIterations ?? DEFAULT_MAX_ITERATIONS;
    for (let iteration = (await this.#restore()) + 1; iteration <= maxIterations; iteration += 1) {
      if (await this.#ctx.step(iteration, () => this.#iterate(iteration))) return;
      if (iteration % CHECKPOINT_EVERY === 0) await this.#checkpoint(iteration);
    }
    this.#ctx.stop({
      stopReason: 'max_steps',
      phase: 'worker',
      detail: `The model gave no accepted answer within max_iterations (${maxIterations}).`,
    });
  }

  /** Restores the latest checkpoint; returns the number of iterations before it. */
  async #restore(): Promise<number> {
    const restored = await this.#ctx.restore();
    if (restored === undefined) return 0;
    const { iteration, refusals, pipeline, gone: dropped } = restored.state as ChatState;
    this.#refusals.restore(refusals);
    this.#pipeline.memory.restore(pipeline);
    this.#conversation.restore(dropped, restored.items as ChatTurn[]);
    return iteration;
  }

  async #checkpoint(iteration: number): Promise<void> {
    const spent = await this.#pipeline.spent(this.#conversation.turns);
    const { dropped, added, needsFrom } = this.#conversation.fold(spent);
    const pipeline = this.#pipeline.memory.save();
    const state: ChatState = { iteration, refusals: this.#refusals.count, pipeline, gone: dropped };
    this.#ctx.checkpoint({ state, added, needsFrom });
  }

  /** Runs one iteration; returns whether the agent has ended. */
  async #iterate(iteration: number): Promise<boolean> {
    this.#ctx.check();
    const view = await this.#pipeline.view(this.#ctx, this.#conversation.turns);
    const request = requestFor(this.#ctx.manifest, view, this.#offers, iteration === 1);
    const answer = this.#answerOrStop(await this.#ctx.llm(request));
    const { text, toolUses = [], callId } = answer;
    this.#conversation.add({ role: 'assistant', text, ...(toolUses.length > 0 && { toolUses }) });
    if (toolUses.length === 0) return await this.#finish(text, callId);
    const outcomes = await this.#toolbox.use(this.#ctx, toolUses, callId, this.#refusals);
    for (const { refusal } of outcomes) if (refusal !== undefined) this.#refusals.record(refusal);
    this.#conversation.add({ role: 'tool', results: outcomes.map(({ result }) => result) });
    return false;
  }

  async #finish(text: string, modelCallId: string): Promise<boolean> {
    const answer = text.trim();
    if (answer === '') {
      this.#ctx.stop({ stopReason: 'llm_empty', phase: 'worker', callId: modelCallId });
    }
    this.#conversation.remember(this.#ctx);
    const outcome = await this.#ctx.reply(answer, { modelCallId });
    if (outcome.kind === 'finished') return true;
    if (outcome.kind === 'refused') this.#refusals.record(outcome.stop);
    const { stopReason } = outcome.kind === 'executed' ? { stopReason: '' } : outcome.stop;
    this.#conversation.add({
      role: 'user',
      hidden: 'refusal',
      text: `This answer was not accepted (${stopReason}: ${outcome.decision.reason}). Correct it or continue.`,
    });
    return false;
  }

  #answerOrStop(answer: ModelAnswer): Extract<ModelAnswer, { kind: 'answer' }> {
    if (answer.kind === 'answer') return answer;
    const { stopReason, detail, callId } = answer;
    return this.#ctx.stop({ stopReason, phase: 'worker', callId, detail });
  }
}

function requestFor(
  { model, initialToolChoice }: AgentManifest,
  messages: readonly ChatTurn[],
  tools: readonly ToolOffer[],
  isFirst: boolean,
): LlmRequest {
  const isToolForced = isFirst && tools.some(({ name }) => name === initialToolChoice);
  return {
    model: model.model,
    messages,
    ...(tools.length > 0 && { tools }),
    ...(isToolForced && { toolChoice: initialToolChoice }),
    temperature: model.temperature ?? 0,
    ...omitUndefined({ maxOutputTokens: model.maxOutputTokens, timeoutMs: model.timeoutMs }),
    json: model.jsonMode,
    requireContent: false,
  };
}
