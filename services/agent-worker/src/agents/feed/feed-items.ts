import type { JsonObject } from '@writ/kernel';
import { omitUndefined } from '@writ/kernel';
import type { AgentManifest } from '../../domain/agent/manifest.ts';
import type { AgentContext } from '../../runtime/agent.ts';
import { partialText } from '../partial-text.ts';

/** Calls the model once with the manifest's instructions; a failure stops the agent. */
export async function summarize(ctx: AgentContext, text: string): Promise<string> {
  const { model, instructions } = ctx.manifest;
  const answer = await ctx.llm({
    model: model.model,
    messages: [
      ...(instructions === '' ? [] : [{ role: 'system', text: instructions } as const]),
      { role: 'user', text },
    ],
    temperature: model.temperature ?? 0,
    ...omitUndefined({ maxOutputTokens: model.maxOutputTokens, timeoutMs: model.timeoutMs }),
    json: model.jsonMode,
    requireContent: true,
  });
  if (answer.kind === 'answer') return answer.text.trim();
  const { stopReason, detail, callId } = answer;
  return ctx.stop({ stopReason, phase: 'worker', callId, detail });
}

/** What a feed does with its items. */
export interface Feed {
  /** Name of the signal that delivers an item. */
  readonly signal: string;
  /** An item to process before any signal; omitted for none. */
  readonly first?: JsonObject;
  /** Processes one item; returns the resulting text. */
  readonly process: (item: JsonObject) => Promise<string>;
}

/** Number of items between two checkpoints, which limits a replay. */
const CHECKPOINT_EVERY = 8;
/** Number of texts that an endless feed keeps, for its partial answer. */
const MAX_RECENT = 32;

/** State of a feed between two items, without its texts. */
interface FeedState {
  readonly items: number;
}

/**
 * Processes items, one per step, until the maximum is reached; returns their texts. A replay starts at the latest
 * checkpoint, so that the cost of a replay does not grow with the number of processed items (RT-1).
 */
export async function collectItems(ctx: AgentContext, feed: Feed): Promise<readonly string[]> {
  const limit = maxItems(ctx.manifest);
  const maxTexts = limit === Number.POSITIVE_INFINITY ? MAX_RECENT : limit;
  const restored = await ctx.restore();
  const texts = (restored?.items ?? []) as string[];
  const unsaved: string[] = [];
  ctx.draft(() => partialText(texts));
  let { items } = (restored?.state ?? { items: 0 }) as FeedState;
  while (items < limit) {
    const first = items === 0 ? feed.first : undefined;
    const work = async () => await feed.process(first ?? (await ctx.sleepUntilSignal(feed.signal)));
    const text = await ctx.step(items + 1, work, first === undefined ? feed.signal : '');
    items += 1;
    texts.push(text);
    unsaved.push(text);
    texts.splice(0, texts.length - maxTexts);
    if (items % CHECKPOINT_EVERY !== 0) continue;
    const needsFrom = Math.max(0, items - maxTexts);
    ctx.checkpoint({ state: { items }, added: unsaved.splice(0), needsFrom });
  }
  return texts;
}

/**
 * Returns the maximum number of items that an agent processes before its final answer; default:
 * unlimited.
 */
function maxItems({ options }: AgentManifest): number {
  const { max_items: most } = options;
  return typeof most === 'number' && Number.isInteger(most) && most >= 0
    ? most
    : Number.POSITIVE_INFINITY;
}
