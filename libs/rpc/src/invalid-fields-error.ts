import { type ErrorMetadata, InvalidRequestError, type ReasonOf } from '@writ/kernel';

/** One field of a request and what is wrong with it. */
export interface FieldViolation {
  /** Path of the field under its proto names, such as `start.labels["a"]`; empty for the whole. */
  readonly field: string;
  /** What is wrong, such as `must be at least 1 characters`; never the value. */
  readonly description: string;
}

/**
 * A request that breaks rules of its contract. The message names the first field, `violations` all
 * of them; they travel as google.rpc.BadRequest (SYS-3).
 */
export class InvalidFieldsError extends InvalidRequestError {
  readonly violations: readonly FieldViolation[];

  constructor(
    violations: readonly FieldViolation[],
    reason: ReasonOf<'invalid_argument'>,
    message: string,
    metadata: ErrorMetadata = {},
  ) {
    super(reason, message, metadata);
    this.violations = violations;
  }
}
