import {
  type AgentDefinition,
  type AgentOperations,
  type ChatTurn,
  type HandoffAnswer,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  type ModelAnswered,
  type ModelCall,
  type ModelQuestion,
  type ModelReply,
  omitUndefined,
  type ReplyAnswer,
  type SpawnAnswer,
  type ToolAnswer,
} from '@writ/kernel';
import type { AgentManifest } from '../../domain/agent/manifest.ts';
import type { LlmRequest } from '../../domain/calls/model-call.ts';
import type {
  Agent,
  AgentContext,
  HandoffOutcome,
  ProposalOutcome,
  SpawnOutcome,
} from '../../runtime/agent.ts';
import { Refusals } from '../chat/refusals.ts';
import { nativeTools } from '../chat/toolbox.ts';
import { firstMessage } from '../first-message.ts';

/**
 * Creates an agent from a TypeScript definition; its return value is proposed as the final answer
 * (AG-1).
 */
export function createCustomAgent(
  definition: AgentDefinition,
  manifest: AgentManifest,
  instance: string,
): Agent {
  return {
    id: instance,
    kind: manifest.kind,
    async run(ctx, inbox) {
      const { text, dataJson } = firstMessage(ctx, inbox);
      const refusals = new Refusals(ctx, 'tell_model');
      const task = { goal: text, data: objectIn(dataJson) };
      const shared: SharedState = { hasReplied: false, historyTurns: undefined, draft: undefined };
      const answer = await definition.run(operationsOf(ctx, refusals, shared), task);
      if (shared.hasReplied || answer === undefined) return;
      const outcome = await ctx.reply(answer);
      if (outcome.kind === 'refused' || outcome.kind === 'failed') ctx.stop(outcome.stop);
    },
  };
}

function objectIn(text: string): JsonObject {
  const value: JsonValue = JSON.parse(text === '' ? '{}' : text);
  return isJsonObject(value) ? value : {};
}

/** State that the branches of an agent share. */
interface SharedState {
  /** Whether an approved answer has ended the agent. */
  hasReplied: boolean;
  /** The turns of the latest `remember` and the text of the latest `draft`; every checkpoint stores both. */
  historyTurns: readonly ChatTurn[] | undefined;
  draft: string | undefined;
}

/** The state of a checkpoint. Replays that start from it do not repeat earlier calls of `remember` and `draft`. */
interface SavedState {
  readonly refusals: number;
  readonly state: JsonValue;
  readonly historyTurns?: readonly ChatTurn[];
  readonly draft?: string;
}

/** Adapts a context to the operations of TypeScript agents. */
function operationsOf(ctx: AgentContext, refusals: Refusals, shared: SharedState): AgentOperations {
  const { manifest, meta } = ctx;
  const { name, instance } = meta.agent ?? { name: manifest.name, instance: '' };
  const remember = (turns: readonly ChatTurn[]) => {
    shared.historyTurns = [...turns];
    ctx.remember(shared.historyTurns);
  };
  const draft = (text: string) => {
    shared.draft = text;
    ctx.draft(() => text);
  };
  return {
    tenant: meta.tenantId ?? '',
    runId: meta.runId,
    agent: { name, instance },
    options: manifest.options,
    check: () => ctx.check(),
    now: () => ctx.now(),
    random: () => ctx.random(),
    log: (message, fields, content) => ctx.log(message, fields, content),
    prompt: (question) => prompt(ctx, question),
    llm: (call) => callModel(ctx, call),
    tools: () => ctx.tools(),
    tool: (tool, args) => callTool(ctx, refusals, tool, args),
    useTools: (reply) => useTools(ctx, refusals, reply),
    handOff: async (agent, task) => handoffAnswer(agent, refusals, await ctx.handOff(agent, task)),
    spawn: async (agent, task, options) =>
      spawnAnswer(refusals, await ctx.spawn(agent, task, options)),
    ask: async (child, timeoutMs) =>
      handoffAnswer(child.name, refusals, await ctx.ask(child, timeoutMs)),
    reply: async (text) => {
      const outcome = replyAnswer(refusals, await ctx.reply(text));
      shared.hasReplied ||= outcome.ok;
      return outcome;
    },
    recall: () => ctx.recall(),
    remember,
    restore: async () => {
      const restored = await ctx.restore();
      if (restored === undefined) return undefined;
      const saved = restored.state as SavedState;
      refusals.restore(saved.refusals);
      if (saved.historyTurns !== undefined) remember(saved.historyTurns);
      if (saved.draft !== undefined) draft(saved.draft);
      return { state: saved.state, items: restored.items as JsonValue[] };
    },
    checkpoint: ({ state, ...items }) => {
      const { hasReplied: _, ...kept } = shared;
      ctx.checkpoint({
        ...items,
        state: { refusals: refusals.count, state, ...omitUndefined(kept) },
      });
    },
    emit: (item) => ctx.emit(manifest.outputTopic, item),
    follow: (topic, options) => ctx.follow(topic, options),
    sleepUntilSignal: (signal) => ctx.sleepUntilSignal(signal),
    sleep: (ms) => ctx.sleep(ms),
    all: (branches) =>
      ctx.all(
        branches.map(
          (branch) => (inner: AgentContext) => branch(operationsOf(inner, refusals, shared)),
        ),
      ),
    step: (step, work, waitsFor) => ctx.step(step, work, waitsFor),
    draft,
    fail: (reason, detail) => ctx.stop({ stopReason: `error:${reason}`, phase: 'worker', detail }),
  };
}

async function prompt(ctx: AgentContext, question: ModelQuestion): Promise<string> {
  const { instructions = ctx.manifest.instructions, text, json } = question;
  const system = instructions === '' ? [] : [{ role: 'system', text: instructions } as const];
  const turns = [...system, { role: 'user', text } as const];
  const request = requestOf(ctx, { turns, ...omitUndefined({ json }) });
  const answer = await ctx.llm({ ...request, messages: turns, requireContent: true });
  if (answer.kind === 'answer') return answer.text;
  const { stopReason, detail, callId } = answer;
  return ctx.stop({ stopReason, phase: 'worker', callId, detail });
}

async function callModel(ctx: AgentContext, call: ModelCall): Promise<ModelReply> {
  const answer = await ctx.llm(requestOf(ctx, call));
  if (answer.kind === 'failed') {
    return { ok: false, error: answer.stopReason, message: answer.detail };
  }
  const { text, toolUses = [], endReason, nearBudget, callId } = answer;
  const turn: ChatTurn = {
    role: 'assistant',
    text,
    ...(toolUses.length > 0 && { toolUses }),
  };
  return { ok: true, text, toolUses, turn, endReason, nearBudget, callId };
}

function requestOf(ctx: AgentContext, call: ModelCall): LlmRequest {
  const { model, instructions } = ctx.manifest;
  const { turns, tools = [], toolChoice, temperature = model.temperature ?? 0 } = call;
  const { maxOutputTokens = model.maxOutputTokens, json = model.jsonMode } = call;
  const hasSystem = turns[0]?.role === 'system' || instructions === '';
  return {
    model: call.model ?? model.model,
    messages: hasSystem ? turns : [{ role: 'system', text: instructions }, ...turns],
    ...(tools.length > 0 && { tools }),
    ...omitUndefined({ toolChoice }),
    temperature,
    ...omitUndefined({ maxOutputTokens, timeoutMs: model.timeoutMs }),
    json,
    requireContent: false,
  };
}

async function useTools(
  ctx: AgentContext,
  refusals: Refusals,
  { toolUses, callId }: ModelAnswered,
): Promise<ChatTurn> {
  const outcomes = await nativeTools.use(ctx, toolUses, callId, refusals);
  for (const { refusal } of outcomes) if (refusal !== undefined) refusals.record(refusal);
  return { role: 'tool', results: outcomes.map(({ result }) => result) };
}

async function callTool(
  ctx: AgentContext,
  refusals: Refusals,
  tool: string,
  args: JsonObject,
): Promise<ToolAnswer> {
  const outcome = await ctx.tool(tool, JSON.stringify(args));
  switch (outcome.kind) {
    case 'executed':
      return { ok: true, result: outcome.observation };
    case 'finished':
      return { ok: false, error: 'error:not_a_tool', message: 'The proposal is not a tool call.' };
    case 'refused':
      refusals.record(outcome.stop);
      return { ok: false, error: outcome.stop.stopReason, message: outcome.decision.reason };
    case 'failed':
      if (outcome.result.status !== 'error') refusals.record(outcome.stop);
      return { ok: false, error: outcome.stop.stopReason, message: outcome.result.message };
  }
}

function replyAnswer(refusals: Refusals, outcome: ProposalOutcome): ReplyAnswer {
  if (outcome.kind === 'finished' || outcome.kind === 'executed') return { ok: true };
  refusals.record(outcome.stop);
  return { ok: false, error: outcome.stop.stopReason, message: outcome.decision.reason };
}

function spawnAnswer(refusals: Refusals, outcome: SpawnOutcome): SpawnAnswer {
  if (outcome.kind === 'spawned') return { ok: true, child: outcome.child };
  return notSpawned(refusals, outcome);
}

function notSpawned(refusals: Refusals, outcome: Exclude<SpawnOutcome, { kind: 'spawned' }>) {
  const { message } = outcome;
  switch (outcome.kind) {
    case 'refused':
      refusals.record(outcome.stop);
      return { ok: false, error: outcome.stop.stopReason, message } as const;
    case 'no_slot':
      return { ok: false, error: outcome.kind, message } as const;
    case 'failed':
      return { ok: false, error: outcome.stopReason, message } as const;
  }
}

function handoffAnswer(agent: string, refusals: Refusals, outcome: HandoffOutcome): HandoffAnswer {
  switch (outcome.kind) {
    case 'replied':
      return { ok: true, text: outcome.text, partial: outcome.partial };
    case 'timed_out':
      return { ok: false, error: outcome.kind, message: `${agent} did not answer in time.` };
    case 'target_failed':
    case 'target_cancelled':
      return {
        ok: false,
        error: outcome.kind,
        message: `${agent} ended without an answer: ${outcome.stopReason}.`,
      };
    default:
      return notSpawned(refusals, outcome);
  }
}
