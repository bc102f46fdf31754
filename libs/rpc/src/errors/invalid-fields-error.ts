import { type ErrorMetadata, InvalidRequestError, type ReasonOf } from '@writ/kernel';

/** One invalid field of a request. */
export interface FieldViolation {
  /**
   * Path of the field in proto names, such as `start.labels["a"]`, or the name of the field if the JSON is malformed;
   * empty for the whole message.
   */
  readonly field: string;
  /** The violated rule, such as `must be at least 1 characters`. */
  readonly description: string;
}

/**
 * A request that violates rules of its contract. The message names the first field; `violations`, of which a
 * server lists at most 16, are sent as google.rpc.BadRequest (SYS-3).
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
