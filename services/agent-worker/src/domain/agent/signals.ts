/** The signal that brings an item of a topic to whoever follows it (AG-5). */
export const FEED_ITEM = 'new_feed_item';

/** The signal that brings an item of a source to the agent that tells of it (AG-5). */
export const SOURCE_ITEM = 'new_source_item';

/** The signal that brings a person's answer to the agent that stands in for them (AG-4). */
export function humanReply(correlationId: string): string {
  return `human_reply:${correlationId}`;
}
