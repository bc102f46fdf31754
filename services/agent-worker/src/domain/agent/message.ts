import { isStopReason, outcomeOf } from '@writ/kernel';

/** A message in an agent's inbox (RT-3). */
export interface Message {
  /** Unique within the run. */
  readonly messageId: string;
  /** The sending agent's instance; empty for the run's caller. */
  readonly senderInstance: string;
  readonly text: string;
  /** Structured payload, a JSON object as text; may be empty. */
  readonly dataJson: string;
  /** Id of the conversation that the message belongs to; may be empty. */
  readonly correlationId: string;
  /** The instance that waits for a reply; empty when no agent waits for a reply. */
  readonly replyTo: string;
  /** Always false: no sender sets it. A partial reply of a child has Reply.partial instead. */
  readonly partial: boolean;
}

/** The result of asking another agent (AG-3). Only `replied` has an answer. */
export type Reply =
  | {
      readonly kind: 'replied';
      readonly text: string;
      /** Whether the text is the partial answer of a paused agent (SB-4). */
      readonly partial: boolean;
    }
  | {
      readonly kind: 'target_failed' | 'target_cancelled';
      /** The stop reason of the asked agent. */
      readonly stopReason: string;
    }
  | { readonly kind: 'timed_out' };

const REPLY = 'reply:';

/** Returns the name of the signal that delivers an agent's reply. */
export function replySignal(instance: string): string {
  return `${REPLY}${instance}`;
}

/** Whether a signal delivers an agent's reply. */
export function isReply(signal: string): boolean {
  return signal.startsWith(REPLY);
}

/** Returns the reply that an ended agent sends to the agent that waits for it. */
export function replyFor(stopReason: string, answer: string | undefined): Reply {
  const outcome = isStopReason(stopReason) ? outcomeOf(stopReason) : undefined;
  if (outcome === undefined) return { kind: 'target_failed', stopReason };
  if (outcome.status !== 'stopped' && answer !== undefined) {
    return { kind: 'replied', text: answer, partial: outcome.status === 'partial' };
  }
  const wasCancelled = outcome.state === 'CANCELLED' || outcome.state === 'HALTED';
  return { kind: wasCancelled ? 'target_cancelled' : 'target_failed', stopReason };
}

/** The signal that delivers a topic item to a subscriber (AG-5). */
export const FEED_ITEM = 'new_feed_item';

/** The signal that delivers a source item to an information agent (AG-5). */
export const SOURCE_ITEM = 'new_source_item';

const HUMAN_REPLY = 'human_reply:';

/** Returns the name of the signal that delivers a human's reply to a user-proxy agent (AG-4). */
export function humanReply(correlationId: string): string {
  return `${HUMAN_REPLY}${correlationId}`;
}

/** Whether a signal delivers a human's reply. */
export function isHumanReply(signal: string): boolean {
  return signal.startsWith(HUMAN_REPLY);
}
