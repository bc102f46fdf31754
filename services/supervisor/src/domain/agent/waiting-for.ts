import { codeWaitFrom, codeWaitSentence } from '@writ/kernel';

/** Prefix of the names of signals that contain the answer of a person (AG-4). */
const HUMAN_REPLY = 'human_reply:';

/** The fields of an agent that {@link hasWorkingDescendant} uses. */
interface TreeAgent {
  readonly instance: string;
  readonly parent_instance: string | null;
  readonly state: string;
}

/** Whether an agent below this one is running; `agents` are the live agents of the run. */
export function hasWorkingDescendant(
  { instance }: Pick<TreeAgent, 'instance'>,
  agents: readonly TreeAgent[],
): boolean {
  return agents.some(
    (child) =>
      child.parent_instance === instance &&
      (child.state === 'RUNNING' || hasWorkingDescendant(child, agents)),
  );
}

/** Whether an agent waits for the answer of a person that it asked. */
export function isInputWait(waitingFor: string | null): boolean {
  return signalsOf(waitingFor).some((signal) => signal.startsWith(HUMAN_REPLY));
}

/** Whether an agent waits for the reply of a child. */
export function awaitsReply(waitingFor: string | null, child: string): boolean {
  return signalsOf(waitingFor).includes(`reply:${child}`);
}

/** Whether an agent has reported a wait that a signal does not end. */
export function waitsForOther(waitingFor: string | null, signal: string): boolean {
  return waitingFor !== null && !signalsOf(waitingFor).includes(signal);
}

/**
 * Returns one sentence that says why an agent waits for the code version with which it started; undefined if it does
 * not wait for code (BD-6).
 */
export function operatorWait(agent: {
  readonly instance: string;
  readonly waiting_for: string | null;
}): string | undefined {
  for (const signal of signalsOf(agent.waiting_for)) {
    const wait = codeWaitFrom(signal);
    if (wait !== undefined) return codeWaitSentence(agent.instance, wait);
  }
  return undefined;
}

function signalsOf(waitingFor: string | null): string[] {
  return waitingFor === null ? [] : (JSON.parse(waitingFor) as string[]);
}
