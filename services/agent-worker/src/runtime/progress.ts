import type { RunState } from '@writ/kernel';
import type { DeltaListener, TextPiece } from '../domain/calls/model-call.ts';
import type { ProgressPublisher, ProgressUpdate } from '../peers/progress-publisher.ts';
import type { LeaseSession } from './leases/lease-session.ts';

/**
 * Publishes live progress of one agent (SUP-1), best effort. Model text, which is not reviewed yet, is published only
 * if the manifest permits it.
 */
export class AgentProgress {
  readonly #session: LeaseSession;
  readonly #publisher: ProgressPublisher;
  #step: number;
  #shown = 0;

  constructor(session: LeaseSession, publisher: ProgressPublisher) {
    this.#session = session;
    this.#publisher = publisher;
    this.#step = session.row.step_started;
  }

  /** Sets the current step, which is published with the next update. */
  enterStep(step: number): void {
    this.#step = step;
  }

  /** Publishes a new state. */
  publishState(state: RunState): void {
    this.#show({ step: this.#step, state });
  }

  /**
   * Returns a listener for the text of a model call; undefined when the manifest does not permit the publication of
   * model text.
   */
  listener(callId: string): DeltaListener | undefined {
    if (!this.#session.manifest.unreviewedDeltas) return undefined;
    const step = this.#step;
    return new DeltaText((piece) => this.#show({ step, text: { ...piece, callId } }));
  }

  #show(update: ProgressUpdate): void {
    this.#shown += 1;
    this.#publisher.show(this.#session.lease, this.#shown, update);
  }
}

/** Maximum length of one piece, in characters. */
const PIECE = 4096;

/**
 * The text of one model call. A retried call delivers its text from the beginning; text that was
 * already published is skipped.
 */
export class DeltaText implements DeltaListener {
  readonly #show: (piece: TextPiece) => void;
  #attempt = 0;
  #position = 0;
  /** End of the published text. */
  #shown = { attempt: 0, position: 0 };

  constructor(show: (piece: TextPiece) => void) {
    this.#show = show;
  }

  begun(): void {
    this.#attempt = 0;
    this.#position = 0;
  }

  attemptStarted(attempt: number): void {
    this.#attempt = attempt;
    this.#position = 0;
  }

  textGenerated(text: string): void {
    for (const textDelta of pieces(text)) {
      const textOffset = this.#position;
      const attempt = this.#attempt;
      this.#position += Buffer.byteLength(textDelta);
      const { attempt: last, position } = this.#shown;
      if (attempt < last || (attempt === last && this.#position <= position)) continue;
      this.#shown = { attempt, position: this.#position };
      this.#show({ attempt, textOffset, textDelta });
    }
  }
}

/** Splits a text without splitting surrogate pairs. */
function* pieces(text: string): Generator<string> {
  for (let start = 0; start < text.length; ) {
    let end = Math.min(start + PIECE, text.length);
    if (end < text.length && isHighSurrogate(text.charCodeAt(end - 1))) end -= 1;
    yield text.slice(start, end);
    start = end;
  }
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
