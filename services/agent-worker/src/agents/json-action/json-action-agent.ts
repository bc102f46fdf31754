import type { AgentManifest } from '../../domain/agent/manifest.ts';
import { isReportableToModel } from '../../domain/calls/decision.ts';
import type { ToolInfo } from '../../domain/calls/tool-call.ts';
import type { Agent, AgentContext, ModelAnswer, ProposalOutcome } from '../../runtime/agent.ts';
import { firstMessage } from '../first-message.ts';
import { type HistoryEntry, historyEntry } from './history.ts';
import { decideRequest, synthesisRequest, type Task, taskOf } from './prompts.ts';

const DEFAULT_MAX_STEPS = 8;
const DEFAULT_MAX_REFUSALS = 3;
/** Steps between two checkpoints: the most that are replayed when the agent runs again. */
const CHECKPOINT_EVERY = 32;

/**
 * Creates a json-action agent (AG-1, AG-2): each turn the model writes one JSON action, the
 * supervisor judges its text, and what was approved is executed. When the steps run out without a
 * final answer, one more call composes it, and it is reviewed like any other.
 */
export function createJsonActionAgent(manifest: AgentManifest, instance: string): Agent {
  return {
    id: instance,
    kind: manifest.kind,
    async run(ctx, inbox) {
      await new JsonActionRun(ctx, taskOf(firstMessage(ctx, inbox))).run();
    },
  };
}

/** What the loop knows between two steps, but for its history. */
interface JsonActionState {
  readonly refusals: number;
}

/** One run of the loop; everything that it knows comes from the journal. */
class JsonActionRun {
  readonly #ctx: AgentContext;
  readonly #task: Task;
  readonly #history: HistoryEntry[] = [];
  #refusals = 0;

  constructor(ctx: AgentContext, task: Task) {
    this.#ctx = ctx;
    this.#task = task;
  }

  async run(): Promise<void> {
    const { manifest } = this.#ctx;
    const tools = await this.#ctx.tools();
    const maxSteps = manifest.limits.maxSteps ?? DEFAULT_MAX_STEPS;
    await this.#restore();
    for (let step = this.#history.length + 1; step <= maxSteps; step += 1) {
      const isOver = await this.#ctx.step(step, () => this.#step(step, tools));
      if (isOver) return;
      if (step % CHECKPOINT_EVERY === 0) this.#checkpoint();
    }
    await this.#compose();
  }

  /** Goes on from the latest checkpoint; each step before it left an entry. */
  async #restore(): Promise<void> {
    const restored = await this.#ctx.restore();
    if (restored === undefined) return;
    this.#refusals = (restored.state as JsonActionState).refusals;
    this.#history.push(...(restored.items as HistoryEntry[]));
  }

  #checkpoint(): void {
    const state: JsonActionState = { refusals: this.#refusals };
    this.#ctx.checkpoint({ state, added: this.#history.slice(-CHECKPOINT_EVERY) });
  }

  /** One cycle: think, propose, see. Answers whether a final ended the run. */
  async #step(step: number, tools: readonly ToolInfo[]): Promise<boolean> {
    const request = decideRequest(this.#ctx.manifest, this.#task, this.#history, tools);
    const answer = await this.#ctx.llm(request);
    const outcome = await this.#ctx.propose({
      rawText: this.#textOf(answer, 'worker'),
      modelCallId: answer.callId,
    });
    if (outcome.kind === 'finished') return true;
    const observation = outcome.kind === 'executed' ? outcome.observation : this.#refused(outcome);
    this.#history.push(historyEntry(step, outcome.decision, observation));
    return false;
  }

  /** The steps are used up: the answer is composed from what was done. */
  async #compose(): Promise<void> {
    const request = synthesisRequest(this.#ctx.manifest, this.#task, this.#history);
    const reply = await this.#ctx.llm(request);
    const answer = this.#textOf(reply, 'finalize').trim();
    if (answer === '') {
      this.#ctx.stop({ stopReason: 'llm_empty', phase: 'finalize', callId: reply.callId });
    }
    const outcome = await this.#ctx.propose({
      action: { kind: 'final', answer },
      modelCallId: reply.callId,
      composed: true,
    });
    if (outcome.kind === 'refused' || outcome.kind === 'failed') this.#ctx.stop(outcome.stop);
  }

  #textOf(answer: ModelAnswer, phase: 'worker' | 'finalize'): string {
    if (answer.kind === 'answer') return answer.text;
    const { stopReason, detail, callId } = answer;
    return this.#ctx.stop({ stopReason, phase, callId, detail });
  }

  /** Stops, or answers what the model is told (AG-10). */
  #refused(outcome: Extract<ProposalOutcome, { kind: 'refused' | 'failed' }>) {
    const { stop } = outcome;
    const { onRefusal = 'stop', limits } = this.#ctx.manifest;
    this.#refusals += 1;
    const isTooMuch = this.#refusals > (limits.maxRefusals ?? DEFAULT_MAX_REFUSALS);
    if (onRefusal === 'stop' || isTooMuch || !isReportableToModel(stop.stopReason))
      this.#ctx.stop(stop);
    return {
      status: outcome.kind,
      error: stop.stopReason,
      message: outcome.kind === 'failed' ? outcome.result.message : outcome.decision.reason,
    };
  }
}
