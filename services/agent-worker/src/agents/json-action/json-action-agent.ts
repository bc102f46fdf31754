import type { AgentManifest } from '../../domain/agent/manifest.ts';
import { isReportableToModel } from '../../domain/calls/decision.ts';
import type { ToolInfo } from '../../domain/calls/tool-call.ts';
import type { Agent, AgentContext, ModelAnswer, ProposalOutcome } from '../../runtime/agent.ts';
import { firstMessage } from '../first-message.ts';
import { draftOf, type HistoryEntry, historyEntry } from './history.ts';
import { decideRequest, synthesisRequest, type Task, taskOf } from './prompts.ts';

const DEFAULT_MAX_STEPS = 8;
const DEFAULT_MAX_REFUSALS = 3;
/** Number of steps between two checkpoints, which limits a replay. */
const CHECKPOINT_EVERY = 32;

/**
 * Creates a json-action agent (AG-1, AG-2): in each step the model writes one JSON action, the supervisor reviews it,
 * and the approved action is executed. When the steps are used up without a final answer, one more model call composes
 * the final answer, which is also reviewed.
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

/** State of the loop between two steps, without its history. */
interface JsonActionState {
  readonly refusals: number;
}

/** The loop of an agent under one lease; its state depends only on the journal. */
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
    this.#ctx.draft(() => draftOf(this.#history));
    for (let step = this.#history.length + 1; step <= maxSteps; step += 1) {
      const isOver = await this.#ctx.step(step, () => this.#step(step, tools));
      if (isOver) return;
      if (step % CHECKPOINT_EVERY === 0) this.#checkpoint();
    }
    await this.#compose();
  }

  /** Restores the latest checkpoint; each earlier step has a history entry. */
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

  /** Executes one step; returns whether an approved final answer has ended the agent. */
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

  /** Composes the final answer from the history. */
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

  /** Stops the agent, or returns the observation for the model (AG-10). */
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
