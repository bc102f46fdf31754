/** The capabilities of a client that determine how its request waits for a person (AP-4). */
export interface ClientTerms {
  /**
   * Whether the client repeats a request automatically when the response asks for it, as MCP clients do from revision
   * 2026-07-28 on.
   */
  readonly repeatsItself: boolean;
  /** Whether it declares the extension for tasks. */
  readonly hasTasks: boolean;
  /** Whether it asks for notifications of progress. */
  readonly wantsProgress: boolean;
}

/** The history of earlier requests of the client. */
export interface ClientPast {
  /** How often it has retried this call on request. */
  readonly retries: number;
  /** The shortest wait after which it disconnected; undefined when it never did. */
  readonly shortestWaitMs: number | undefined;
}

/** How long a request is held while a person decides, and how it is answered when that time has elapsed. */
export interface WaitingPolicy {
  readonly answer: 'task' | 'repeat' | 'pending';
  readonly holdMs: number;
}

/** Clients that retry automatically send a call at most ten times. */
const MAX_RETRIES = 9;
const HOLD_MS = { task: 2_000, retry: 50_000, progress: 210_000, pending: 45_000 };
/**
 * Lower limit of the time that a request of a client without tasks waits for a decision. It is below the five seconds
 * after which OpenAI Agents for Python disconnects by default.
 */
const MIN_HOLD_MS = 3_000;

/**
 * Returns how long a request waits for a decision, and how it is answered after that time: with a task if the client
 * supports tasks, with a `requestState` if the client retries automatically and has retries left, otherwise with the
 * message that nothing was executed and that the client should repeat the request. In this last case, a request with
 * progress notifications waits longer. Except with tasks, the time is at most 80 percent of the shortest wait after
 * which the client disconnected, but never less than {@link MIN_HOLD_MS}.
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
