export type {
  ChatTurn,
  LlmOutcome,
  LlmRequest,
  ToolOffer,
  ToolUse,
  ToolUseResult,
} from '@writ/kernel';

/** Receives a model's output while it is generated; for display only. */
export interface DeltaListener {
  /** A call or a retry of the call started; the output is delivered from its beginning. */
  begun(): void;
  /** An attempt started; numbered from 1. */
  attemptStarted(attempt: number): void;
  /** The model generated the next piece of text. */
  textGenerated(text: string): void;
}

/** A piece of an attempt's text and its offset in bytes of UTF-8. */
export interface TextPiece {
  readonly attempt: number;
  readonly textOffset: number;
  readonly textDelta: string;
}
