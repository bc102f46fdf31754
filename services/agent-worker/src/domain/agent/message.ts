import { isStopReason, outcomeOf } from '@writ/kernel';

/** One entry of an agent's inbox (RT-3). */
export interface Message {
  /** Unique within the run. */
  readonly messageId: string;
  /** The sending agent's instance; empty for the run's caller. */
  readonly senderInstance: string;
  readonly text: string;
  /** Structured payload, a JSON object as text; may be empty. */
  readonly dataJson: string;
  /** The conversation that it belongs to; may be empty. */
  readonly correlationId: string;
  /** The instance that waits for a reply; empty when nobody does. */
  readonly replyTo: string;
  /** The content is a partial result of a paused agent. */
  readonly partial: boolean;
}

/** What came of asking another agent (AG-3). Only `replied` carries a result. */
export type Reply =
  | {
      readonly kind: 'replied';
      readonly text: string;
      /** The result of an agent that was paused before it was done (SB-4). */
      readonly partial: boolean;
    }
  | {
      readonly kind: 'target_failed' | 'target_cancelled';
      /** How the asked agent ended. */
      readonly stopReason: string;
    }
  | { readonly kind: 'timed_out' };

/** The signal that brings the reply of an agent. */
export function replySignal(instance: string): string {
  return `reply:${instance}`;
}

/** What an agent's end is to whoever asked it. */
export function replyFor(stopReason: string, answer: string | undefined): Reply {
  const outcome = isStopReason(stopReason) ? outcomeOf(stopReason) : undefined;
  if (outcome === undefined) return { kind: 'target_failed', stopReason };
  if (outcome.status !== 'stopped' && answer !== undefined) {
    return { kind: 'replied', text: answer, partial: outcome.status === 'partial' };
  }
  const wasCalledOff = outcome.state === 'CANCELLED' || outcome.state === 'HALTED';
  return { kind: wasCalledOff ? 'target_cancelled' : 'target_failed', stopReason };
}

/** The signal that brings an item of a topic to whoever follows it (AG-5). */
export const FEED_ITEM = 'new_feed_item';

/** The signal that brings an item of a source to the agent that tells of it (AG-5). */
export const SOURCE_ITEM = 'new_source_item';

/** The signal that brings a person's answer to the agent that stands in for them (AG-4). */
export function humanReply(correlationId: string): string {
  return `human_reply:${correlationId}`;
}
