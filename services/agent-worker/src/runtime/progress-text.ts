import type { DeltaListener, TextPiece } from '../domain/calls/model-call.ts';

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
