import { isStopReason, outcomeOf } from '@writ/kernel';

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
