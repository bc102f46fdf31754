import type { JsonObject } from '@writ/kernel';
import type { AgentManifest } from '../domain/agent/manifest.ts';
import { humanReply } from '../domain/agent/message.ts';
import type { Agent, AgentContext } from '../runtime/agent.ts';
import { firstMessage, textOf } from './first-message.ts';

/**
 * Creates an agent that acts for a human: it records the question, is suspended until the human
 * answers, and replies with the answer (AG-4). It has no model and no tools.
 */
export function createUserProxyAgent(manifest: AgentManifest, instance: string): Agent {
  return {
    id: instance,
    kind: manifest.kind,
    async run(ctx, inbox) {
      const message = firstMessage(ctx, inbox);
      const correlationId = message.correlationId || ctx.meta.runId;
      const signal = humanReply(correlationId);
      const question = { correlation_id: correlationId, text: textOf(message) };
      await ctx.step(1, () => ask(ctx, signal, question), signal);
    },
  };
}

async function ask(ctx: AgentContext, signal: string, question: JsonObject): Promise<void> {
  const { correlation_id: id } = question;
  ctx.log('hitl.question', { correlation_id: String(id) }, question);
  const answer = await ctx.sleepUntilSignal(signal);
  const outcome = await ctx.reply(
    typeof answer.text === 'string' ? answer.text : JSON.stringify(answer),
  );
  if (outcome.kind === 'refused' || outcome.kind === 'failed') ctx.stop(outcome.stop);
}
