import { backoffMs } from '@writ/kernel/portable';
import { isTransient, mayBeLostConnection } from './errors.ts';

/** The callbacks of {@link follow}. */
export interface Follower<M> {
  /** Opens the stream; called for each attempt. */
  readonly open: (signal: AbortSignal) => AsyncIterable<M>;
  readonly onMessage: (message: M) => void;
  /** Called with true for each message, and with false when the stream has ended. */
  readonly onConnected: (isConnected: boolean) => void;
  /**
   * Called after `onConnected(false)` with an error that is not retried or that lasts, and with undefined when a
   * message arrives after an error that lasted.
   */
  readonly onError: (error: unknown) => void;
  /** Returns whether the stream is complete, so that it is not reopened. */
  readonly isDone?: () => boolean;
}

const BACKOFF = { baseMs: 500, maxMs: 15_000 };
/**
 * Number of errors, without a message between them, after which an error is reported although it is retried. Transient
 * errors do not count.
 */
const LASTING_FAILURES = 5;
/**
 * Time without a message after which a stream is reopened, ms. The server sends a heartbeat after five seconds without
 * another message.
 */
const SILENCE_MS = 15_000;

/**
 * Follows a stream and reconnects with back-off. It stops when the returned function is called, when the stream is
 * done, or after an error that is not retried. While the tab is hidden it disconnects, because over HTTP/1.1 a browser
 * has only six connections for all tabs of an origin.
 */
export function follow<M>(follower: Follower<M>): () => void {
  const stopped = new AbortController();
  void run(follower, stopped.signal);
  return () => stopped.abort();
}

async function run<M>(follower: Follower<M>, stopped: AbortSignal): Promise<void> {
  let failures = 0;
  /** Errors since the last message that may not be those of a lost connection. */
  let unclear = 0;
  while (!stopped.aborted && follower.isDone?.() !== true) {
    await visible(stopped);
    if (stopped.aborted) return;
    try {
      await readOnce(follower, stopped, () => {
        failures = 0;
        if (unclear >= LASTING_FAILURES) follower.onError(undefined);
        unclear = 0;
      });
      if (follower.isDone?.() === true) return;
    } catch (error) {
      if (stopped.aborted) return;
      const isTemporary = isTransient(error) || isAbort(error);
      const isRetried = isTemporary || mayBeLostConnection(error);
      if (!isTemporary) unclear += 1;
      if (!isRetried || (!isTemporary && unclear >= LASTING_FAILURES)) {
        follower.onConnected(false);
        follower.onError(error);
      }
      if (!isRetried) return;
    }
    follower.onConnected(false);
    if (document.hidden) continue;
    failures += 1;
    await pause(backoffMs(failures, BACKOFF), stopped);
  }
}

/** Reads one stream until it ends, is silent, or the tab is hidden. */
async function readOnce<M>(
  { open, onMessage, onConnected }: Follower<M>,
  stopped: AbortSignal,
  onReceived: () => void,
): Promise<void> {
  const attempt = new AbortController();
  const abort = (): void => attempt.abort();
  const onHidden = (): void => {
    if (document.hidden) abort();
  };
  stopped.addEventListener('abort', abort);
  document.addEventListener('visibilitychange', onHidden);
  let silence = setTimeout(abort, SILENCE_MS);
  try {
    for await (const message of open(attempt.signal)) {
      clearTimeout(silence);
      silence = setTimeout(abort, SILENCE_MS);
      onConnected(true);
      onMessage(message);
      onReceived();
    }
  } finally {
    clearTimeout(silence);
    stopped.removeEventListener('abort', abort);
    document.removeEventListener('visibilitychange', onHidden);
  }
}

/** Whether the stream ended with CANCELED, because its attempt was aborted. */
function isAbort(error: unknown): boolean {
  return error instanceof Error && /cancel|abort/i.test(error.message);
}

function visible(stopped: AbortSignal): Promise<void> {
  if (!document.hidden) return Promise.resolve();
  return new Promise((resolve) => {
    const check = (): void => {
      if (document.hidden && !stopped.aborted) return;
      document.removeEventListener('visibilitychange', check);
      stopped.removeEventListener('abort', check);
      resolve();
    };
    document.addEventListener('visibilitychange', check);
    stopped.addEventListener('abort', check);
  });
}

function pause(ms: number, stopped: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      stopped.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    stopped.addEventListener('abort', end);
  });
}
