import { codeWaitFrom, codeWaitSentence } from '@writ/kernel';

/** The name of a signal that answers a question to a person starts with this (AG-4). */
const HUMAN_REPLY = 'human_reply:';

/** The fields of an agent that decide whether it works. */
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

/**
 * Returns why an agent waits for the code with which it started, in one sentence; undefined when it waits for nothing
 * else than people, time and other agents (BD-6).
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
