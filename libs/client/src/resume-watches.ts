import type { CallOptions, Client } from '@connectrpc/connect';
import type { RunEvent } from '@writ/contracts/writ/run/v1/run_pb';
import type {
  RunAgentResponse,
  RunService,
  WatchRunResponse,
} from '@writ/contracts/writ/run/v1/run_service_pb';
import { UnavailableError } from '@writ/kernel';
import { Outage } from './outage.ts';

type Runs = Client<typeof RunService>;

/**
 * Default time without a message after which a watch reconnects, ms; the supervisor sends a heartbeat after 5 s without
 * an event.
 */
const SILENCE_MS = 15_000;
/** Number of silent streams in succession after which a watch fails. */
const MAX_SILENT = 4;

/** Limits of a watch. */
export interface WatchLimits {
  /** Time without a message after which the watch reconnects, ms. Default {@link SILENCE_MS}. */
  readonly silenceMs?: number;
  /** Time during which the watch reconnects after UNAVAILABLE, ms. Default zero: the watch fails at once. */
  readonly reconnectMs?: number;
}

/** Opens one stream of a watch. */
type Open<M> = (options: CallOptions) => AsyncIterable<M>;

/**
 * Returns the messages to deliver to the reader for one message of the supervisor; none for a heartbeat. `resumes` is
 * true for the first message of every stream except the first.
 */
type Deliver<M> = (message: M, resumes: boolean) => readonly M[] | Promise<readonly M[]>;

/**
 * Wraps watchRun and runAgent: heartbeats are not delivered, and when neither an event nor a heartbeat comes for
 * `silenceMs`, the watch continues after its last event on another stream. After {@link MAX_SILENT} silent streams in
 * succession, the watch throws UnavailableError WATCH_SILENT. After UNAVAILABLE, for example because the supervisor
 * restarts, the watch reconnects for at most `reconnectMs`, then throws the error. Other errors pass through.
 */
export function resumeWatches(runs: Runs, limits: WatchLimits = {}): Runs {
  const watchRun: Runs['watchRun'] = (request, options) => {
    let after = request.afterSequence ?? 0n;
    const open: Open<WatchRunResponse> = (callOptions) =>
      runs.watchRun({ ...request, afterSequence: after }, callOptions);
    return resumed(open, options, limits, (message) => {
      after = laterOf(after, message.event);
      return withoutHeartbeat(message);
    });
  };
  const runAgent: Runs['runAgent'] = (request, options) => {
    let runId = '';
    let after = 0n;
    const { progress = false } = request;
    // A repeated runAgent with the same request_id watches the run that the first one started.
    const open: Open<RunAgentResponse> = (callOptions) =>
      runId === ''
        ? runs.runAgent(request, callOptions)
        : ofRun(runId, runs.watchRun({ runId, afterSequence: after, progress }, callOptions));
    return resumed(open, options, limits, (message) => {
      ({ runId } = message);
      after = laterOf(after, message.event);
      return withoutHeartbeat(message);
    });
  };
  return { ...runs, watchRun, runAgent };
}

function withoutHeartbeat<M extends WatchRunResponse | RunAgentResponse>(message: M): M[] {
  return message.event?.entry.case === 'heartbeat' ? [] : [message];
}

/** Returns the later of `after` and the sequence of an event. Live progress has the sequence zero. */
function laterOf(after: bigint, event: RunEvent | undefined): bigint {
  const sequence = event?.sequence ?? 0n;
  return sequence > after ? sequence : after;
}

async function* ofRun(
  runId: string,
  messages: AsyncIterable<WatchRunResponse>,
): AsyncIterable<RunAgentResponse> {
  for await (const { event } of messages) {
    yield { $typeName: 'writ.run.v1.RunAgentResponse', runId, ...(event && { event }) };
  }
}

/**
 * Returns a watch over successive streams: a stream that is silent for `silenceMs`, or fails with UNAVAILABLE, is
 * replaced by a new one. The first stream is opened immediately, not at the first read.
 * @throws UnavailableError WATCH_SILENT after {@link MAX_SILENT} silent streams in succession; the error of the last
 * stream after `reconnectMs` without a message
 */
export function resumed<M>(
  open: Open<M>,
  options: CallOptions = {},
  { silenceMs = SILENCE_MS, reconnectMs = 0 }: WatchLimits,
  deliver: Deliver<M>,
): AsyncIterable<M> {
  const first = new Attempt(open, options, silenceMs);
  return follow();

  async function* follow(): AsyncIterable<M> {
    const outage = new Outage(reconnectMs);
    let attempt = first;
    for (let silent = 0; ; attempt = new Attempt(open, options, silenceMs)) {
      let resumes = attempt !== first;
      try {
        for await (const message of attempt.messages()) {
          silent = 0;
          const delivered = await deliver(message, resumes);
          outage.end();
          yield* delivered;
          resumes = false;
        }
      } catch (error) {
        await outage.pause(error, options.signal);
        continue;
      }
      if (!attempt.wasSilent) return;
      silent += 1;
      if (silent >= MAX_SILENT) throw silence(silent * silenceMs);
    }
  }
}

/** One stream, which is cancelled if no message arrives within `silenceMs`. */
class Attempt<M> {
  readonly #silenceMs: number;
  readonly #abort = new AbortController();
  readonly #stream: AsyncIterable<M>;
  #wasSilent = false;

  constructor(open: Open<M>, { signal, ...options }: CallOptions, silenceMs: number) {
    this.#silenceMs = silenceMs;
    const signals = signal === undefined ? [] : [signal];
    this.#stream = open({ ...options, signal: AbortSignal.any([this.#abort.signal, ...signals]) });
  }

  get wasSilent(): boolean {
    return this.#wasSilent;
  }

  /** Yields the messages of the stream until it ends or is silent for `silenceMs`. */
  async *messages(): AsyncIterable<M> {
    const iterator = this.#stream[Symbol.asyncIterator]();
    try {
      while (true) {
        const result = await this.#next(iterator);
        if (result.done) return;
        yield result.value;
      }
    } catch (error) {
      if (!this.#wasSilent) throw error;
    } finally {
      this.#abort.abort();
    }
  }

  /**
   * Waits for the next message, at most `silenceMs`. The time that the reader needs to process a message does not
   * count.
   */
  async #next(iterator: AsyncIterator<M>): Promise<IteratorResult<M>> {
    const timer = setTimeout(() => {
      this.#wasSilent = true;
      this.#abort.abort();
    }, this.#silenceMs);
    try {
      return await iterator.next();
    } finally {
      clearTimeout(timer);
    }
  }
}

function silence(ms: number): UnavailableError {
  return new UnavailableError(
    'WATCH_SILENT',
    `The supervisor sent neither a message nor a heartbeat for ${ms / 1_000} seconds; check its health and watch again.`,
  );
}
