import type { RunState } from '@writ/kernel';
import type { DeltaListener, TextPiece } from '../domain/calls/model-call.ts';
import type { ProgressPublisher, ProgressUpdate } from '../peers/progress-publisher.ts';
import type { Session } from './session.ts';

/**
 * Shows whoever looks right now what one agent does (SUP-1). Nothing depends on it, waits for it or
 * keeps it; of model text only where the manifest says that it may be seen before it is reviewed.
 */
export class AgentProgress {
  readonly #session: Session;
  readonly #publisher: ProgressPublisher;
  #step: number;
  #shown = 0;

  constructor(session: Session, publisher: ProgressPublisher) {
    this.#session = session;
    this.#publisher = publisher;
    this.#step = session.row.step_started;
  }

  /** The agent is in this step from now on; shown with what it does there. */
  enterStep(step: number): void {
    this.#step = step;
  }

  /** Shows what the agent does from now on. */
  publishState(state: RunState): void {
    this.#show({ step: this.#step, state });
  }

  /** Who hears what the model says during a call; undefined where nobody may. */
  listener(callId: string): DeltaListener | undefined {
    if (!this.#session.manifest.unreviewedDeltas) return undefined;
    const step = this.#step;
    return new DeltaText((piece) => this.#show({ step, text: { ...piece, callId } }));
  }

  #show(news: ProgressUpdate): void {
    this.#shown += 1;
    this.#publisher.show(this.#session.lease, this.#shown, news);
  }
}

/** Longest piece in one message, in characters. */
const PIECE = 4096;

/**
 * The text of one model call. A call that is made again is told from its beginning, once more: what
 * was shown already is not shown again.
 */
export class DeltaText implements DeltaListener {
  readonly #show: (piece: TextPiece) => void;
  #attempt = 0;
  #position = 0;
  /** How far it was shown. */
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

  said(text: string): void {
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

/** Cuts a text where no character is torn apart. */
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
