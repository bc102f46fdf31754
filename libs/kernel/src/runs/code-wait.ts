/** Why a worker cannot continue an agent with its code (RT-1, BD-6). */
export type CodeMismatch =
  /**
   * The code requests an operation that differs from the journal, or sends a request that differs from the one that a
   * service has recorded.
   */
  | 'journal_divergence'
  /** The worker lacks the version of the code with which the agent started. */
  | 'version_missing'
  /** No module of the worker defines the agent. */
  | 'agent_missing'
  /** The worker rejects a setting of the definition, such as middleware that it lacks. */
  | 'setting_rejected';

/** The reason why an agent waits for a worker with the code with which it started. */
export interface CodeWait {
  readonly mismatch: CodeMismatch;
  /** The call_id, version, agent or reason code that the mismatch concerns; may be empty. */
  readonly subject: string;
}

const PREFIX = 'code';
/** Maximum length of a signal name, in characters. */
const MAX_SIGNAL = 160;

const CAUSES: Readonly<Record<CodeMismatch, (subject: string) => string>> = {
  journal_divergence: (callId) =>
    `the code of the worker differs from what the agent did at ${callId === '' ? 'an earlier call' : callId}`,
  version_missing: (version) => `the worker lacks version "${version}" of its code`,
  agent_missing: (agent) => `no module of the worker defines ${agent}`,
  setting_rejected: (reason) => `the worker rejects a setting of its definition (${reason})`,
};

/**
 * Returns the name of the signal that represents this wait of an agent.
 *
 * @example
 * ```ts
 * import { codeWaitSignal } from '@writ/kernel';
 *
 * codeWaitSignal({ mismatch: 'version_missing', subject: '2' }); // 'code:version_missing:2'
 * ```
 */
export function codeWaitSignal({ mismatch, subject }: CodeWait): string {
  return `${PREFIX}:${mismatch}:${subject}`.slice(0, MAX_SIGNAL);
}

/** Returns the code wait that a signal name represents; undefined for all other signals. */
export function codeWaitFrom(signal: string): CodeWait | undefined {
  const [prefix, mismatch = '', ...subject] = signal.split(':');
  if (prefix !== PREFIX || !Object.hasOwn(CAUSES, mismatch)) return undefined;
  return { mismatch: mismatch as CodeMismatch, subject: subject.join(':') };
}

/** Returns the message for people: what the agent waits for, why, and what an operator can do. */
export function codeWaitSentence(agent: string, { mismatch, subject }: CodeWait): string {
  return `Agent ${agent} waits for the code with which it started: ${CAUSES[mismatch](subject)}. Start a worker with the previous code, or cancel the run.`;
}
