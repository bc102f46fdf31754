import { eventMac } from '@writ/identity';
import type { WritError } from '@writ/kernel';
import type { CallChunk, CallEnd, CarriedEvent } from '../../domain/chat/call-chunk.ts';
import type { CallFailure } from '../../domain/chat/failure.ts';
import { isNearBudget } from '../../domain/ledger/balance.ts';
import type { EndedCall } from './call-record.ts';

/** Buffers the chunks of a call, so that every reader receives all of them from the start (EM-7). */
export class ChunkBuffer {
  readonly #chunks: CallChunk[] = [];
  #ended: { readonly error?: unknown } | undefined;
  #changed = Promise.withResolvers<void>();

  #hasNative = false;

  /** Whether a part of a native answer was added. */
  get hasNative(): boolean {
    return this.#hasNative;
  }

  /** Adds a chunk. */
  append(chunk: CallChunk): void {
    if (chunk.type === 'native') this.#hasNative = true;
    this.#chunks.push(chunk);
    this.#notify();
  }

  /** Ends the buffer; with an error, readers fail with it after the last chunk. */
  end(error?: unknown): void {
    if (this.#ended !== undefined) return;
    this.#ended = error === undefined ? {} : { error };
    this.#notify();
  }

  /**
   * Yields every chunk from the first to the last.
   * @throws the error of the buffer; the reason of `signal` as soon as it aborts
   */
  async *read(signal: AbortSignal): AsyncGenerator<CallChunk, void, undefined> {
    const notify = (): void => this.#notify();
    signal.addEventListener('abort', notify, { once: true });
    try {
      for (let index = 0; ; ) {
        signal.throwIfAborted();
        const chunk = this.#chunks[index];
        if (chunk !== undefined) {
          index += 1;
          yield chunk;
        } else if (this.#ended === undefined) {
          await this.#changed.promise;
        } else if (this.#ended.error === undefined) return;
        else throw this.#ended.error;
      }
    } finally {
      signal.removeEventListener('abort', notify);
    }
  }

  #notify(): void {
    const { resolve } = this.#changed;
    this.#changed = Promise.withResolvers<void>();
    resolve();
  }
}

/** Appends the `finished` chunk of an answered call (EM-9). */
export function reportAnswer(chunks: ChunkBuffer, ended: EndedCall, replayed = false): void {
  chunks.append({ type: 'finished', ...endOf(ended, undefined, replayed) });
}

/** A failure to report, with the error that ends the call. */
export interface ReportedFailure {
  readonly failure: CallFailure;
  readonly error: WritError;
  readonly replayed?: boolean;
}

/**
 * Appends the `finished` chunk of a failed call and throws its error (EM-9).
 * @throws `error`
 */
export function reportFailure(
  chunks: ChunkBuffer,
  ended: EndedCall,
  { failure, error, replayed = false }: ReportedFailure,
): never {
  chunks.append({ type: 'finished', ...endOf(ended, failure, replayed) });
  throw error;
}

/**
 * Appends the `finished` chunk of an interrupted call; a repeat makes another attempt.
 * @throws `error`
 */
export function reportInterruption(chunks: ChunkBuffer, ended: EndedCall, error: WritError): never {
  const { reason, message } = error;
  const failure = { stopReason: 'cancelled', reason, message };
  return reportFailure(chunks, ended, { failure, error });
}

function endOf(ended: EndedCall, failure: CallFailure | undefined, replayed: boolean): CallEnd {
  const { tab, call, levels } = ended;
  return {
    answer: call.answer,
    failure,
    usage: call.usage,
    cost: call.cost,
    estimated: call.estimated,
    attempts: call.attempts,
    replayed,
    nearBudget: levels.some((balance) => isNearBudget(balance, tab.near)),
    runCost: levels.find(({ level }) => level === 'run')?.used.cost ?? 0n,
    warnings: call.warnings,
    fittedOutput: call.fittedOutput,
    events: carriedEvents(ended),
  };
}

/** The events of a call for the supervisor; none if its run has no event key. */
function carriedEvents({ tab, call }: EndedCall): CarriedEvent[] {
  const key = Buffer.from(tab.eventKey, 'hex');
  if (key.length === 0) return [];
  return call.events.map((encoded) => {
    const event = new Uint8Array(Buffer.from(encoded, 'base64'));
    return { event, mac: eventMac(key, event) };
  });
}
