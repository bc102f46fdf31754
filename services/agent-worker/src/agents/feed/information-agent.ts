import type { JsonObject } from '@writ/kernel';
import type { AgentManifest } from '../../domain/agent/manifest.ts';
import { SOURCE_ITEM } from '../../domain/agent/message.ts';
import type { Agent, AgentContext } from '../../runtime/agent.ts';
import { firstMessage, textOf } from '../first-message.ts';
import { collectItems, summarize } from './feed-items.ts';

/**
 * Creates an agent that summarises each item of a source and publishes the summary to its topic
 * (AG-5). The first item is the agent's message; the others arrive as signals.
 */
export function createInformationAgent(manifest: AgentManifest, instance: string): Agent {
  return {
    id: instance,
    kind: manifest.kind,
    async run(ctx, inbox) {
      const summaries = await collectItems(ctx, {
        signal: SOURCE_ITEM,
        first: { text: textOf(firstMessage(ctx, inbox)) },
        process: (item) => publishSummary(ctx, itemText(item)),
      });
      const outcome = await ctx.reply(summaries.join('\n') || 'There were no items to summarise.');
      if (outcome.kind === 'refused' || outcome.kind === 'failed') ctx.stop(outcome.stop);
    },
  };
}

async function publishSummary(ctx: AgentContext, item: string): Promise<string> {
  const text = await summarize(ctx, item);
  const { outputTopic } = ctx.manifest;
  if (outputTopic !== '') await ctx.emit(outputTopic, { text });
  return text;
}

function itemText(item: JsonObject): string {
  return typeof item.text === 'string' ? item.text : JSON.stringify(item);
}
