/** What a request says about its client, as far as it concerns waiting for a person (AP-4). */
export interface ClientTerms {
  /** Whether it repeats a request by itself when the answer asks for it: from revision 2026-07-28 on. */
  readonly repeatsItself: boolean;
  /** Whether it declares the extension for tasks. */
  readonly hasTasks: boolean;
  /** Whether it asks for notifications of progress. */
  readonly wantsProgress: boolean;
}

/** What is known of earlier requests of the client. */
export interface ClientPast {
  /** How often it has repeated this call on request. */
  readonly leg: number;
  /** How long it waited before it left; undefined when it never left a wait. */
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
export function rungOf(client: ClientTerms, { leg, patienceMs }: ClientPast): Rung {
  const { hasTasks, repeatsItself, wantsProgress } = client;
  if (hasTasks) return { answer: 'task', holdMs: HOLD_MS.task };
  if (repeatsItself && leg < MAX_LEGS) {
    return { answer: 'repeat', holdMs: bearable(patienceMs, HOLD_MS.leg) };
  }
  const longest = wantsProgress ? HOLD_MS.progress : HOLD_MS.patience;
  return { answer: 'pending', holdMs: bearable(patienceMs, longest) };
}

function bearable(patienceMs: number | undefined, longestMs: number): number {
  return Math.max(
    LEAST_PATIENCE_MS,
    Math.min(longestMs, Math.floor((patienceMs ?? Infinity) * 0.8)),
  );
}
