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
  /** How often it has retried this call on request. */
  readonly retries: number;
  /** The shortest wait after which it disconnected; undefined when it never did. */
  readonly shortestWaitMs: number | undefined;
}

/** How long a request is held while a person decides, and how it is answered then. */
export interface WaitingPolicy {
  readonly answer: 'task' | 'repeat' | 'pending';
  readonly holdMs: number;
}

/** A client that retries by itself sends a call at most ten times. */
const MAX_RETRIES = 9;
const HOLD_MS = { task: 2_000, retry: 50_000, progress: 210_000, pending: 45_000 };
/** OpenAI Agents for Python disconnects after five seconds by default. */
const MIN_HOLD_MS = 3_000;

/**
 * Returns how a request waits: as a task, else with retries that the client sends by itself, else with progress, else
 * until the answer that nothing was executed and that the client is to retry the call.
 */
export function waitingPolicyOf(
  client: ClientTerms,
  { retries, shortestWaitMs }: ClientPast,
): WaitingPolicy {
  const { hasTasks, repeatsItself, wantsProgress } = client;
  if (hasTasks) return { answer: 'task', holdMs: HOLD_MS.task };
  if (repeatsItself && retries < MAX_RETRIES) {
    return { answer: 'repeat', holdMs: holdWithin(shortestWaitMs, HOLD_MS.retry) };
  }
  const longest = wantsProgress ? HOLD_MS.progress : HOLD_MS.pending;
  return { answer: 'pending', holdMs: holdWithin(shortestWaitMs, longest) };
}

function holdWithin(shortestWaitMs: number | undefined, longestMs: number): number {
  return Math.max(MIN_HOLD_MS, Math.min(longestMs, Math.floor((shortestWaitMs ?? Infinity) * 0.8)));
}
