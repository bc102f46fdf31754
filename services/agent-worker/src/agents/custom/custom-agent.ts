import { type AgentDefinition, isJsonObject, type JsonObject, type JsonValue } from '@writ/kernel';
import type { AgentManifest } from '../../domain/agent/manifest.ts';
import type { Agent } from '../../runtime/agent.ts';
import { Refusals } from '../chat/refusals.ts';
import { firstMessage } from '../first-message.ts';
import { operationsOf } from './operations.ts';

/** Creates an agent that is written in TypeScript; what it returns is proposed as the final (AG-1). */
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
