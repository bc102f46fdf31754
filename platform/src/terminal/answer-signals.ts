import type { WritClient } from '@writ/client';
import { HookEventType } from '@writ/contracts/writ/hook/v1/hook_event_pb';
import type { RunEvent } from '@writ/contracts/writ/run/v1/run_pb';
import type { AgentRef } from '@writ/contracts/writ/supervision/v1/supervision_pb';
import { isWritError, type JsonObject } from '@writ/kernel';

/** A scripted signal to a waiting agent. */
export interface ScriptedSignal {
  /** Name of the signal without the part after a colon: `human_reply`, `new_source_item`. */
  readonly name: string;
  readonly payload: JsonObject;
}

/** Shows a signal that is about to be sent. */
export type SignalShown = (agent: AgentRef, name: string, payloadJson: string) => void;

/**
 * Returns a function that handles the events of a run: when an agent starts to wait for a signal, the function sends
 * the next scripted signal with this name to the agent. A restarted client sends the same signals again, which has no
 * effect.
 */
export function createSignalAnswers(
  client: Pick<WritClient, 'runs'>,
  signals: readonly ScriptedSignal[],
) {
  const unsent = [...signals];

  return async (
    runId: string,
    event: RunEvent,
    onSignal: SignalShown = () => undefined,
  ): Promise<void> => {
    if (event.entry.case !== 'hook') return;
    const { type, agent, waitingFor, eventId } = event.entry.value;
    if (type !== HookEventType.STEP_START || waitingFor === '' || agent === undefined) return;
    const index = unsent.findIndex(({ name }) => name === waitingFor.split(':')[0]);
    const [signal] = index === -1 ? [] : unsent.splice(index, 1);
    if (signal === undefined) return;
    const payloadJson = JSON.stringify(signal.payload);
    onSignal(agent, signal.name, payloadJson);
    try {
      await client.runs.signalRun({
        // Derived from the event, so that several watchers send one signal.
        requestId: eventId,
        runId,
        agentInstance: agent.instance,
        name: waitingFor,
        payloadJson,
      });
    } catch (error) {
      // Another watcher may have answered, or the agent may have ended.
      if (!isWritError(error) || error.kind !== 'failed_precondition') throw error;
    }
  };
}
