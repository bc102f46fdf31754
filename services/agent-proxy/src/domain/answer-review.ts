/** How tool calls in answers of models are reviewed (AP-5). */
export interface AnswerReview {
  /** How long a request is held while a person decides, ms. */
  readonly holdMs: number;
  /** Maximum number of refusals that the model receives within one request. */
  readonly maxRefusals: number;
  /** Whether a refusal ends the run. */
  readonly endsRun: boolean;
}

/** `holdMs` is below the five minutes after which clients and load balancers close a connection without data. */
export const REVIEW_DEFAULTS = { holdMs: 280_000, maxRefusals: 3 } as const;
