import type { WritClient } from '@writ/client';
import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import type { RunEvent } from '@writ/contracts/writ/run/v1/run_pb';
import { isWritError, type JsonObject } from '@writ/kernel';

/** One thing that somebody outside says to an agent that waits for it. */
export interface Saying {
  /** What is waited for, without what may follow a colon: `human_reply`, `new_source_item`. */
  readonly name: string;
  readonly payload: JsonObject;
}

/**
 * Stands in for the world: gives each agent of a run that waits for a signal the next saying of that
 * name. A watcher that begins anew says the same again, which changes nothing.
 */
export function createSayings(client: WritClient, sayings: readonly Saying[]) {
  const waiting = [...sayings];

  return async (runId: string, event: RunEvent): Promise<void> => {
    if (event.entry.case !== 'hook') return;
    const { type, agent, waitingFor, eventId } = event.entry.value;
    if (type !== HookEventType.STEP_START || waitingFor === '' || agent === undefined) return;
    const index = waiting.findIndex(({ name }) => name === waitingFor.split(':')[0]);
    const [saying] = index === -1 ? [] : waiting.splice(index, 1);
    if (saying === undefined) return;
    try {
      await client.runs.signalRun({
        // The same event asks the same, whoever watches.
        requestId: eventId,
        runId,
        agentInstance: agent.instance,
        name: waitingFor,
        payloadJson: JSON.stringify(saying.payload),
      });
    } catch (error) {
      // Somebody else may have answered, or the agent has ended meanwhile.
      if (!isWritError(error) || error.kind !== 'failed_precondition') throw error;
    }
  };
}
