/** One entry of an agent's inbox (RT-3). */
export interface Message {
  /** Unique within the run. */
  readonly messageId: string;
  /** The sending agent's instance; empty for the run's caller. */
  readonly senderInstance: string;
  readonly text: string;
  /** Structured payload, a JSON object as text; may be empty. */
  readonly dataJson: string;
  /** The conversation that it belongs to; may be empty. */
  readonly correlationId: string;
  /** The instance that waits for a reply; empty when nobody does. */
  readonly replyTo: string;
  /** The content is a partial result of a paused agent. */
  readonly partial: boolean;
}
