import {
  type AgentDefinition,
  type AgentOperations,
  type HandoffAnswer,
  isJsonObject,
  type JsonObject,
  type JsonValue,
  type ModelQuestion,
  type ToolAnswer,
} from '@writ/kernel';
import type { AgentManifest } from '../../domain/agent/manifest.ts';
import type { Agent, AgentContext } from '../../runtime/agent.ts';
import { Refusals } from '../chat/refusals.ts';
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
      const answer = await definition.run(operationsOf(ctx, refusals), task);
      const outcome = await ctx.reply(answer);
      if (outcome.kind === 'refused' || outcome.kind === 'failed') ctx.stop(outcome.stop);
    },
  };
}

function objectIn(text: string): JsonObject {
  const value: JsonValue = JSON.parse(text === '' ? '{}' : text);
  return isJsonObject(value) ? value : {};
}

/** Adapts a context to the operations of TypeScript agents. */
function operationsOf(ctx: AgentContext, refusals: Refusals): AgentOperations {
  const { manifest, meta } = ctx;
  const { name, instance } = meta.agent ?? { name: manifest.name, instance: '' };
  return {
    tenant: meta.tenantId ?? '',
    runId: meta.runId,
    agent: { name, instance },
    options: manifest.options,
    check: () => ctx.check(),
    now: () => ctx.now(),
    random: () => ctx.random(),
    log: (message, fields, content) => ctx.log(message, fields, content),
    ask: (question) => ask(ctx, question),
    tool: (tool, args) => callTool(ctx, refusals, tool, args),
    handOff: (agent, task) => handOff(ctx, refusals, agent, task),
    emit: (item) => ctx.emit(manifest.outputTopic, item),
    follow: (topic) => ctx.follow(topic),
    sleepUntilSignal: (signal) => ctx.sleepUntilSignal(signal),
    sleep: (ms) => ctx.sleep(ms),
    all: (branches) =>
      ctx.all(
        branches.map((branch) => (inner: AgentContext) => branch(operationsOf(inner, refusals))),
      ),
    step: (step, work, waitsFor) => ctx.step(step, work, waitsFor),
    draft: (text) => ctx.draft(() => text),
    fail: (reason, detail) => ctx.stop({ stopReason: `error:${reason}`, phase: 'worker', detail }),
  };
}

async function ask(ctx: AgentContext, question: ModelQuestion): Promise<string> {
  const { model, instructions: own } = ctx.manifest;
  const { instructions = own, text, json = model.jsonMode } = question;
  const answer = await ctx.llm({
    model: model.model,
    messages: [
      ...(instructions === '' ? [] : [{ role: 'system', text: instructions } as const]),
      { role: 'user', text },
    ],
    temperature: model.temperature ?? 0,
    ...(model.maxOutputTokens !== undefined && { maxOutputTokens: model.maxOutputTokens }),
    ...(model.timeoutMs !== undefined && { timeoutMs: model.timeoutMs }),
    json,
    requireContent: true,
  });
  if (answer.kind === 'answer') return answer.text;
  const { stopReason, detail, callId } = answer;
  return ctx.stop({ stopReason, phase: 'worker', callId, detail });
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
      refusals.take(outcome.stop);
      return { ok: false, error: outcome.stop.stopReason, message: outcome.decision.reason };
    case 'failed':
      if (outcome.result.status !== 'error') refusals.take(outcome.stop);
      return { ok: false, error: outcome.stop.stopReason, message: outcome.result.message };
  }
}

async function handOff(
  ctx: AgentContext,
  refusals: Refusals,
  agent: string,
  task: string,
): Promise<HandoffAnswer> {
  const outcome = await ctx.handOff(agent, task);
  switch (outcome.kind) {
    case 'replied':
      return { ok: true, text: outcome.text, partial: outcome.partial };
    case 'refused':
      refusals.take(outcome.stop);
      return { ok: false, error: outcome.stop.stopReason, message: outcome.message };
    case 'no_slot':
      return { ok: false, error: outcome.kind, message: outcome.message };
    case 'failed':
      return { ok: false, error: outcome.stopReason, message: outcome.message };
    case 'timed_out':
      return { ok: false, error: outcome.kind, message: `${agent} did not answer in time.` };
    case 'target_failed':
    case 'target_cancelled':
      return {
        ok: false,
        error: outcome.kind,
        message: `${agent} ended without an answer: ${outcome.stopReason}.`,
      };
  }
}
