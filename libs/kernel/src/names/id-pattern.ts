import { InvalidRequestError } from '../errors/errors.ts';

/** The pattern of every id on the wire, in rows and in subjects (SYS-6). */
export const ID_PATTERN = /^[a-z0-9_-]{1,64}$/;

/** The pattern of tool names, which model APIs accept as function names. */
export const TOOL_NAME_PATTERN = /^[a-zA-Z0-9_-]{1,64}$/;

/** Whether `value` is a well-formed id (SYS-6). */
export function isId(value: unknown): value is string {
  return typeof value === 'string' && ID_PATTERN.test(value);
}

/**
 * Returns `value` when it is a well-formed id (SYS-6).
 * @throws InvalidRequestError INVALID_ID naming `field`
 */
export function assertId(value: unknown, field: string): string {
  if (isId(value)) return value;
  throw new InvalidRequestError(
    'INVALID_ID',
    `${field} must be 1 to 64 characters from a-z, 0-9, underscore and hyphen.`,
    { field },
  );
}
