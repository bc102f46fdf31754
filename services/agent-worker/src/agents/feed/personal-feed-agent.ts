import type { JsonObject } from '@writ/kernel';
import type { AgentManifest } from '../../domain/agent/manifest.ts';
import { FEED_ITEM } from '../../domain/agent/message.ts';
import type { Agent, AgentContext } from '../../runtime/agent.ts';
import { firstMessage, textOf } from '../first-message.ts';
import { collectItems, summarize } from './feed-items.ts';

/**
 * Creates an agent that subscribes to topics and curates each item for the reader described in its
 * message (AG-5).
 */
export function createPersonalFeedAgent(manifest: AgentManifest, instance: string): Agent {
  return {
    id: instance,
    kind: manifest.kind,
    async run(ctx, inbox) {
      const reader = textOf(firstMessage(ctx, inbox));
      const durable = manifest.options.durable_follows === true;
      for (const topic of manifest.followTopics) await ctx.follow(topic, { durable });
      const curated = await collectItems(ctx, {
        signal: FEED_ITEM,
        process: (item) => curate(ctx, reader, item),
      });
      const outcome = await ctx.reply(curated.join('\n') || 'There were no items to curate.');
      if (outcome.kind === 'refused' || outcome.kind === 'failed') ctx.stop(outcome.stop);
    },
  };
}

async function curate(ctx: AgentContext, reader: string, signal: JsonObject): Promise<string> {
  const { topic = '', item = {} } = signal;
  const text = await summarize(ctx, JSON.stringify({ reader, topic, item }));
  ctx.log('feed.curated', { topic: String(topic) }, { text });
  const { outputTopic } = ctx.manifest;
  if (outputTopic !== '') await ctx.emit(outputTopic, { text });
  return text;
}
