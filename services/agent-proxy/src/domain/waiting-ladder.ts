/** What a request says about its client, as far as it concerns waiting for a person (AP-4). */
export interface ClientTerms {
  /** Whether it repeats a request by itself when the answer asks for it: from revision 2026-07-28 on. */
  readonly repeatsItself: boolean;
  /** Whether it declares the extension for tasks. */
  readonly hasTasks: boolean;
  /** Whether it asks for notifications of progress. */
  readonly wantsProgress: boolean;
  /** How often it has repeated this call on request. */
  readonly leg: number;
  /** How long it has waited at most before it left, in milliseconds; undefined when it never left. */
  readonly patienceMs: number | undefined;
}

/** How long a request is held while a person decides, and how it is answered then. */
export interface Rung {
  readonly answer: 'task' | 'repeat' | 'pending';
  readonly holdMs: number;
}

/** A client that repeats by itself makes at most ten rounds. */
const MAX_LEGS = 9;
const HOLD_MS = { task: 2_000, leg: 50_000, progress: 210_000, patience: 45_000 };
/** OpenAI Agents for Python leaves after five seconds by default. */
const LEAST_PATIENCE_MS = 3_000;

/**
 * Returns the rung of the ladder for a request: a task, else a repeat that the client makes by itself, else a wait with
 * progress, else the answer that nothing was executed and that the client is to repeat the call.
 */
export function rungOf(client: ClientTerms): Rung {
  const { hasTasks, repeatsItself, wantsProgress, leg } = client;
  if (hasTasks) return { answer: 'task', holdMs: HOLD_MS.task };
  if (repeatsItself && leg < MAX_LEGS) {
    return { answer: 'repeat', holdMs: bearable(client, HOLD_MS.leg) };
  }
  const longest = wantsProgress ? HOLD_MS.progress : HOLD_MS.patience;
  return { answer: 'pending', holdMs: bearable(client, longest) };
}

function bearable({ patienceMs = Infinity }: ClientTerms, longestMs: number): number {
  return Math.max(LEAST_PATIENCE_MS, Math.min(longestMs, Math.floor(patienceMs * 0.8)));
}
