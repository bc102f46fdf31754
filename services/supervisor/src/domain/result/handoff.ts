import { outcomeOf } from '@writ/kernel';
import type { HandoffRecord } from './result-records.ts';

/** Why a delegation failed; undefined when it returned an answer. */
export function handoffFailure(handoff: HandoffRecord): string | undefined {
  switch (handoff.kind) {
    case 'refused':
      return 'budget_exhausted:spawns';
    case 'failed':
      return `error:${handoff.reason}`;
    case 'made':
      return isAnswer(handoff) ? undefined : (handoff.stopReason ?? 'cancelled');
  }
}

/** The observation of a delegation, as JSON: the child's reviewed answer, or why there is none (AG-3). */
export function handoffObservation(handoff: HandoffRecord): string {
  switch (handoff.kind) {
    case 'refused':
      return JSON.stringify({ status: 'refused', message: handoff.sentence });
    case 'failed':
      return JSON.stringify({ status: 'failed', reason: handoff.reason });
    case 'made': {
      const { instance: agent, stopReason = 'cancelled', answer = '' } = handoff;
      if (!isAnswer(handoff)) {
        return JSON.stringify({ status: 'failed', agent, stop_reason: stopReason });
      }
      const partial = outcomeOf(stopReason).status === 'partial';
      return JSON.stringify({ status: 'replied', agent, answer, ...(partial && { partial }) });
    }
  }
}

function isAnswer({ stopReason }: Extract<HandoffRecord, { kind: 'made' }>): boolean {
  return stopReason !== undefined && outcomeOf(stopReason).status !== 'stopped';
}
